#include "data/ict_dataset.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "data/megatron/python_random.h"
#include "data/padded_text.h"

namespace bev {

namespace {

// Kept for the next sample that this thread reads.
IctTexts& ict_workspace(int64_t sequence) {
  thread_local IctTexts texts;
  texts.query.reserve(static_cast<size_t>(sequence));
  texts.context.reserve(static_cast<size_t>(sequence));
  return texts;
}

// Appends the first tokens of a range, at most `most`, and returns how many more may follow.
int64_t append(const TokenFile& file, int64_t begin, int64_t end, int64_t most, int64_t vocab,
               std::vector<int32_t>& text) {
  const int64_t tokens = std::clamp<int64_t>(end - begin, 0, most);
  const size_t before = text.size();
  text.resize(before + static_cast<size_t>(tokens));
  file.read(begin, std::span(text).subspan(before), vocab);
  return most - tokens;
}

}  // namespace

DocumentRule IctSamplesSpec::document_rule() const {
  DocumentRule rule = part.document_rule(least_sentences());
  rule.single_may_be_long = false;
  return rule;
}

IctDataset::IctDataset(std::shared_ptr<const TokenFile> file, IctSamplesSpec spec)
    : file_(std::move(file)), spec_(std::move(spec)) {
  const SentencePart& part = spec_.part;
  const bool is_megatron = part.order == SampleOrder::Megatron;
  if (is_megatron) check_mapping_size(*file_, part.wanted, sizeof(Block) + sizeof(Query));
  add_epoch();
  epoch_samples_ = std::ssize(blocks_);
  BEV_CHECK(epoch_samples_ > 0, Internal, "{}: documents {} to {} have no block",
            file_->prefix().string(), part.documents.begin, part.documents.end);
  if (!is_megatron) return;
  while (std::ssize(blocks_) < part.wanted.value_or(0)) add_epoch();
  shuffle_mapping(blocks_, static_cast<uint32_t>(part.seed));
  draw_queries();
}

IctDataset::Range IctDataset::title_range(int64_t title) const {
  if (!spec_.titles) return {};
  const TokenIndex& index = spec_.titles->index();
  const Range range{spec_.titles->stream_begin(index.document_begin(title)),
                    spec_.titles->stream_begin(index.document_begin(title + 1))};
  return {range.begin, std::min(range.end, range.begin + most_title_tokens(spec_.sequence))};
}

int64_t IctDataset::room(int64_t title) const {
  return spec_.sequence - (spec_.titles ? 3 + title_range(title).tokens() : 2);
}

void IctDataset::add_epoch() {
  const SentencePart& part = spec_.part;
  const int64_t least = spec_.least_sentences();
  const DocumentRule rule = spec_.document_rule();
  int64_t number = 0;
  for (int64_t i = part.documents.begin; i < part.documents.end; ++i) {
    if (document_use(file_->index(), i, rule) != DocumentUse::Usable) continue;
    const int64_t title = part.order == SampleOrder::Megatron ? i - part.documents.begin : i;
    const int64_t target = room(title);
    cut_document(
        file_->index(), i, {.least = least, .least_left = least}, [target] { return target; },
        [&](int64_t begin, int64_t end, int64_t) {
          blocks_.push_back({begin, end, title, number++});
        });
  }
}

template <class Random>
IctDataset::Query IctDataset::draw_query(const Block& block, Random& random) const {
  const int64_t sentence = random.integer(block.begin, block.end);
  return {sentence, random.random() < spec_.query_in_block};
}

void IctDataset::draw_queries() {
  PythonRandom random(spec_.part.seed);
  queries_.reserve(blocks_.size());
  for (const Block& each : blocks_) queries_.push_back(draw_query(each, random));
}

IctDataset::Query IctDataset::query(int64_t index) const {
  if (spec_.part.order == SampleOrder::Megatron) return queries_[spec_.part.place(index, count())];
  const Block& from = block(index);
  SampleRandom random{SampleStream(mix_key(spec_.part.seed, "block queries"), index)};
  Query drawn = draw_query(from, random);
  drawn.stays = drawn.stays || from.end - from.begin == 1;
  return drawn;
}

const IctTexts& IctDataset::texts(int64_t index) const {
  IctTexts& texts = ict_workspace(spec_.sequence);
  const Block& from = block(index);
  const Query drawn = query(index);
  const int64_t begin = file_->stream_begin(drawn.sentence),
                end = file_->stream_begin(drawn.sentence + 1);
  texts.query.assign(1, spec_.classify);
  append(*file_, begin, end, spec_.sequence - 2, spec_.vocab, texts.query);
  texts.query.push_back(spec_.separate);

  texts.context.assign(1, spec_.classify);
  if (spec_.titles) {
    const Range title = title_range(from.title);
    append(*spec_.titles, title.begin, title.end, title.tokens(), spec_.vocab, texts.context);
    texts.context.push_back(spec_.separate);
  }
  const int64_t left = append(*file_, file_->stream_begin(from.begin), drawn.stays ? end : begin,
                              room(from.title), spec_.vocab, texts.context);
  append(*file_, end, file_->stream_begin(from.end), left, spec_.vocab, texts.context);
  texts.context.push_back(spec_.separate);
  return texts;
}

void IctDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  const IctTexts& sample = texts(index);
  put_padded(sample.query, spec_.pad, batch.text(kQueryText), at);
  put_padded(sample.context, spec_.pad, batch.text(kContextText), at);
  batch.number_rows(at, index);
}

SampleSource IctDataset::source(int64_t index) const {
  SampleSource source{.file = file_->prefix().string()};
  if (spec_.part.order == SampleOrder::Arithmetic) source.epoch = index / count();
  const Block& from = block(index);
  const int64_t sentence = query(index).sentence;
  add_sentence_pieces(*file_, file_->stream_begin(sentence), file_->stream_begin(sentence + 1),
                      source);
  add_sentence_pieces(*file_, file_->stream_begin(from.begin), file_->stream_begin(from.end),
                      source);
  return source;
}

std::string IctDataset::describe(int64_t index) const {
  const Block& from = block(index);
  return format("sample {}: sentence {} of the block of sentences {} to {} of {}", index,
                query(index).sentence, from.begin, from.end - 1, file_->prefix().string());
}

}  // namespace bev
