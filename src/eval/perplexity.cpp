#include "eval/perplexity.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "data/token_file.h"
#include "data/training_data.h"
#include "text/utf8.h"

namespace bev {

std::string rule_in_words(const PerplexityRule& rule) {
  const std::string first =
      rule.before < 0
          ? "the first one is not scored"
          : format("the first one is scored from id {}, the end of a document", rule.before);
  const std::string seen =
      rule.overlap == 0
          ? "that share none"
          : format("that share {} with the window before, where they are scored already",
                   rule.overlap);
  return format("each token is scored once, from those before it in a window of {} tokens {}; {}{}",
                rule.length, seen, first,
                rule.separate ? ", and so in every document, which stands alone" : "");
}

PerplexityWindows::PerplexityWindows(const EvalText& text, const PerplexityRule& rule) {
  const auto add = [&](int64_t begin, int64_t size) {
    begins_.push_back(begin);
    parts_.emplace_back(part_of(text.stream, begin, size), rule.length, rule.overlap, rule.before);
  };
  if (rule.separate) {
    const int64_t least = rule.before < 0 ? 2 : 1;
    for (const EvalDocument& document : text.documents)
      if (document.tokens >= least) add(document.begin, document.tokens);
    BEV_CHECK(!parts_.empty(), Data, "{}: no document has enough tokens to score", text.name);
  } else {
    add(0, text.stream.size);
  }
  first_.push_back(0);
  for (const ScoringWindows& part : parts_) first_.push_back(first_.back() + part.windows());
}

PerplexityWindows::Place PerplexityWindows::place(int64_t index) const {
  const auto behind = std::upper_bound(first_.begin(), first_.end(), index);
  const auto part = static_cast<size_t>(behind - first_.begin()) - 1;
  return {part, index - first_[part]};
}

ScoringItems PerplexityWindows::items() const {
  return {.count = count(), .read = [this](int64_t index) {
            const Place at = place(index);
            return parts_[at.part].item(at.window);
          }};
}

int64_t PerplexityWindows::first_place(int64_t index) const {
  const Place at = place(index);
  return begins_[at.part] + parts_[at.part].first_place(at.window);
}

TextScore score_text(Scorer& scorer, const EvalText& text, const PerplexityWindows& windows,
                     FunctionRef<void(int64_t done)> on_done) {
  TextScore result{.documents = std::vector<DocumentScore>(text.documents.size())};
  size_t document = 0;
  scorer.score(
      windows.items(),
      [&](int64_t index, std::span<const TokenScore> scores) {
        int64_t place = windows.first_place(index);
        for (const TokenScore& score : scores) {
          while (place >= text.documents[document].begin + text.documents[document].tokens)
            ++document;
          result.documents[document].nats += score.loss;
          ++result.documents[document].tokens;
          ++place;
        }
      },
      on_done);
  // By documents, so that the whole is the sum of what is told of them.
  for (const DocumentScore& each : result.documents) {
    result.tokens += each.tokens;
    result.nats += each.nats;
  }
  return result;
}

namespace {

void count_text(EvalText& text, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (EvalDocument& document : text.documents) {
    ids.resize(static_cast<size_t>(document.tokens));
    if (!ids.empty()) text.stream.read(document.begin, ids);
    // Ends of documents are tokens but no text.
    const std::string decoded = tokenizer.decode(ids, SpecialIds::LeaveOut);
    document.bytes = static_cast<int64_t>(decoded.size());
    document.words = count_words(decoded);
  }
  text.has_text = true;
}

// The documents of some sequences of a file; what is left of one at either end counts as one.
std::vector<EvalDocument> documents_in(const TokenFile& file, const SequenceRange& range) {
  const TokenIndex& index = file.index();
  const int64_t first = file.stream_begin(range.begin);
  std::vector<EvalDocument> documents;
  const auto add = [&](int64_t begin, int64_t end) {
    const int64_t place = file.stream_begin(begin), behind = file.stream_begin(end);
    if (behind > place) documents.push_back({.begin = place - first, .tokens = behind - place});
  };
  int64_t begin = range.begin;
  for (int64_t d = 0; d < index.documents(); ++d) {
    const int64_t end = std::min(index.document_begin(d + 1), range.end);
    if (end <= begin) continue;
    add(begin, end);
    begin = end;
  }
  if (begin < range.end) add(begin, range.end);
  return documents;
}

EvalText part_of_file(const std::string& prefix, std::optional<SequenceRange> range,
                      const Config& config) {
  const auto file = std::make_shared<const TokenFile>(
      prefix, config.data.mmap ? TokenAccess::Mapped : TokenAccess::Pieces);
  BEV_CHECK(file->index().tokens() > 0, Data, "{}: the files hold no tokens", prefix);
  if (!range) range = SequenceRange{0, file->index().sequences()};
  const int64_t begin = file->stream_begin(range->begin);
  return {.name = prefix,
          .stream = {.size = file->stream_begin(range->end) - begin,
                     .read = [file, begin, vocab = config.model.vocab](
                                 int64_t at,
                                 std::span<int32_t> out) { file->read(begin + at, out, vocab); }},
          .documents = documents_in(*file, *range)};
}

}  // namespace

EvalText eval_text_of(std::string name, std::string_view text, DocumentBreak documents,
                      Tokenizer& tokenizer) {
  const auto ids = std::make_shared<std::vector<int32_t>>();
  EvalText result{.name = std::move(name), .has_text = true, .ids = ids};
  for_each_document(text, documents, [&](std::string_view document) {
    const auto begin = static_cast<int64_t>(ids->size());
    tokenizer.encode(document, *ids);
    const size_t valid = valid_utf8_prefix(document);
    const auto of_document = std::span<const int32_t>(*ids).subspan(static_cast<size_t>(begin));
    // Only where bytes are tokens is anything else scored as it is.
    BEV_CHECK(
        valid == document.size() || tokenizer.decode(of_document, SpecialIds::LeaveOut) == document,
        Data,
        "{}: byte {} is not UTF-8, and the tokenizer would score another character in its "
        "place; legal: a text in UTF-8",
        result.name, static_cast<size_t>(document.data() - text.data()) + valid);
    if (const auto eod = tokenizer.eod_id()) ids->push_back(*eod);
    result.documents.push_back({.begin = begin,
                                .tokens = static_cast<int64_t>(ids->size()) - begin,
                                .bytes = static_cast<int64_t>(document.size()),
                                .words = count_words(document)});
  });
  BEV_CHECK(!ids->empty(), Data, "{}: there is no text in the file", result.name);
  result.stream = stream_of(*ids);
  return result;
}

EvalText eval_token_file(const std::string& prefix, const Config& config,
                         const Tokenizer* tokenizer) {
  EvalText text = part_of_file(prefix, std::nullopt, config);
  if (tokenizer != nullptr) count_text(text, *tokenizer);
  return text;
}

EvalText eval_validation(const ModelFolder& folder, const Tokenizer* tokenizer) {
  const DataConfig& d = folder.config.data;
  BEV_CHECK(folder.is_run && (!d.path.empty() || !d.valid_path.empty()), Usage,
            "there is nothing to score: --data PREFIX or --text FILE names it");
  const ErrorContext context(
      "opening the validation data of the training; --data or --text names something else");
  const TrainingData data = open_training_data(folder.config, 0);
  EvalText all;
  for (const TrainingData::Part& part : data.parts) {
    if (part.split != Split::Valid) continue;
    EvalText next = part_of_file(part.prefix.string(), part.range, folder.config);
    if (all.name.empty()) {
      all = std::move(next);
      continue;
    }
    for (EvalDocument& document : next.documents) {
      document.begin += all.stream.size;
      all.documents.push_back(document);
    }
    all.stream = joined(std::move(all.stream), std::move(next.stream));
    all.name += ", " + next.name;
  }
  BEV_CHECK(!all.name.empty(), Data,
            "the data of the training has no validation part; --data PREFIX or --text FILE names "
            "something to score");
  if (tokenizer != nullptr) count_text(all, *tokenizer);
  return all;
}

}  // namespace bev
