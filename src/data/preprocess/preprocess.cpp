#include "data/preprocess/preprocess.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "base/json.h"
#include "data/preprocess/ordered_pipeline.h"
#include "text/utf8.h"

namespace bev {

namespace {

// What goes through the pipeline.
struct Slot {
  TextChunk chunk;
  int64_t first_record = 0;
  EncodedChunk encoded;
};

// One token file and, when there are several, the partitions it is made of.
class Output {
 public:
  Output(const std::filesystem::path& prefix, TokenType type, int64_t partitions)
      : writer_(prefix, type) {
    if (partitions > 1)
      for (int64_t i = 0; i < partitions; ++i) spools_.emplace_back(prefix.parent_path());
  }

  // REQUIRES: as many as there are partitions.
  void add(std::span<const EncodedDocuments> parts) {
    if (spools_.empty()) return writer_.add(parts.front());
    for (size_t i = 0; i < spools_.size(); ++i) spools_[i].add(parts[i]);
  }

  void commit() {
    for (const PartitionSpool& spool : spools_) spool.write_to(writer_);
    writer_.commit();
  }

  const TokenFileWriter& writer() const { return writer_; }

 private:
  TokenFileWriter writer_;
  std::vector<PartitionSpool> spools_;
};

class Preprocessor {
 public:
  Preprocessor(const PreprocessOptions& options, const Tokenizer& tokenizer,
               FunctionRef<bool(const PreprocessCounts&)> progress)
      : options_(options),
        progress_(progress),
        type_(token_type_for(tokenizer.vocab_size())),
        chunks_(options.inputs, {.records = options.kind == InputKind::Jsonl ? DocumentBreak::Line
                                                                             : options.documents,
                                 .longest_record = static_cast<size_t>(options.longest_line)}),
        rejected_(options.prefix.string() + ".rejected.jsonl") {
    const EncoderOptions encoding{.kind = options.kind,
                                  .keys = options.keys,
                                  .documents = options.documents,
                                  .type = type_,
                                  .append_eod = options.append_eod,
                                  .split_sentences = options.split_sentences,
                                  .keep_newlines = options.keep_newlines,
                                  .punkt = options.punkt,
                                  .partitions = options.partitions};
    for (int64_t i = 0; i < options.workers; ++i)
      encoders_.push_back(std::make_unique<DocumentEncoder>(tokenizer.clone(), encoding));
    const size_t files = options.kind == InputKind::Jsonl ? options.keys.size() : 1;
    for (size_t i = 0; i < files; ++i) {
      report_.files.push_back({.prefix = output_prefix(options, options.keys[i])});
      outputs_.push_back(
          std::make_unique<Output>(report_.files.back().prefix, type_, options.partitions));
    }
  }

  PreprocessReport run() {
    const size_t workers = encoders_.size();
    slots_.resize(2 * workers + 2);
    run_ordered(workers, slots_.size(),
                {.produce = [&](size_t slot) { return produce(slots_[slot]); },
                 .work =
                     [&](size_t worker, size_t slot) {
                       Slot& s = slots_[slot];
                       encoders_[worker]->encode(s.chunk, s.first_record, s.encoded);
                     },
                 .consume = [&](size_t slot) { return consume(slots_[slot]); }});
    if (!report_.stopped) finish();
    report_.rejected_path = rejected_.path();
    report_.first_rejected = rejected_.first();
    return std::move(report_);
  }

 private:
  bool produce(Slot& slot) {
    slot.first_record = records_;
    if (!chunks_.next(slot.chunk)) return false;
    const std::string& text = slot.chunk.text;
    records_ += slot.chunk.cut_record > 0 ? 1 : std::count(text.begin(), text.end(), '\n');
    // The last line of a file may have no end.
    if (slot.chunk.cut_record == 0 && !text.empty() && text.back() != '\n') ++records_;
    return true;
  }

  bool consume(const Slot& slot) {
    const EncodedChunk& e = slot.encoded;
    const std::string& input = options_.inputs[slot.chunk.input];
    BEV_CHECK(options_.kind == InputKind::Jsonl || slot.chunk.cut_record == 0, Data,
              "{}: a document has more than {} bytes; --max-line-size allows more, "
              "or --documents line cuts it",
              input, with_commas(options_.longest_line));
    const auto partitions = static_cast<size_t>(options_.partitions);
    for (size_t i = 0; i < outputs_.size(); ++i)
      outputs_[i]->add(std::span(e.parts).subspan(i * partitions, partitions));
    PreprocessCounts& c = report_.counts;
    for (const EncodedDocuments& part : e.parts)
      c.tokens += static_cast<int64_t>(part.ids.size() / size_of(type_));
    c.documents += e.documents;
    c.blank_lines += e.blank_lines;
    c.bytes += e.bytes;
    c.taken = slot.chunk.taken;
    for (const RejectedLine& line : e.rejected) {
      rejected_.add(input, line);
      ++c.rejected;
      if (c.rejected > options_.max_rejected) refuse("too many lines cannot be used");
    }
    report_.stopped = !progress_(c);
    return !report_.stopped;
  }

  [[noreturn]] void refuse(std::string_view what) {
    rejected_.commit();
    std::string text =
        format("{}: {} so far, --max-rejected {} allows no more; they are in {}", what,
               rejected_.count(), options_.max_rejected, rejected_.path().string());
    for (const std::string& line : rejected_.first()) text += "\n  " + line;
    throw Error(ErrorKind::Data, text);
  }

  void finish() {
    const PreprocessCounts& c = report_.counts;
    if (c.documents == 0 && c.rejected > 0) refuse("no line can be used");
    BEV_CHECK(c.documents > 0 && c.tokens > 0, Data, "{}: there is no text to tokenize",
              options_.inputs.front());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i]->commit();
      report_.files[i].documents = outputs_[i]->writer().documents();
      report_.files[i].tokens = outputs_[i]->writer().tokens();
    }
    rejected_.commit();
  }

  const PreprocessOptions& options_;
  FunctionRef<bool(const PreprocessCounts&)> progress_;
  TokenType type_;
  TextChunks chunks_;
  int64_t records_ = 0;
  RejectedFile rejected_;
  std::vector<std::unique_ptr<DocumentEncoder>> encoders_;
  std::vector<std::unique_ptr<Output>> outputs_;
  std::vector<Slot> slots_;
  PreprocessReport report_;
};

}  // namespace

std::filesystem::path output_prefix(const PreprocessOptions& options, const std::string& key) {
  const std::string prefix = options.prefix.string();
  if (options.kind == InputKind::Text)
    return options.split_sentences ? prefix + "_sentence" : prefix;
  return format("{}_{}_{}", prefix, key, options.split_sentences ? "sentence" : "document");
}

PreprocessReport preprocess(const PreprocessOptions& options, const Tokenizer& tokenizer,
                            FunctionRef<bool(const PreprocessCounts&)> progress) {
  return Preprocessor(options, tokenizer, progress).run();
}

namespace {

// Calls f with one block of the file after the other.
template <class T, class F>
void for_each_block(const SpoolFile& file, F f) {
  constexpr size_t kBlock = size_t{1} << 20;
  std::vector<T> block;
  for (size_t done = 0; done < file.size(); done += block.size() * sizeof(T)) {
    block.resize(std::min(kBlock, file.size() - done) / sizeof(T));
    file.read_at(done, std::as_writable_bytes(std::span(block)));
    f(std::span<const T>(block));
  }
}

}  // namespace

void PartitionSpool::add(const EncodedDocuments& documents) {
  ids_.write(documents.ids);
  lengths_.write(std::as_bytes(std::span(documents.lengths)));
  sequences_.write(std::as_bytes(std::span(documents.sequences)));
}

void PartitionSpool::write_to(TokenFileWriter& writer) const {
  for_each_block<std::byte>(ids_, [&](auto block) { writer.add_ids(block); });
  for_each_block<int32_t>(lengths_, [&](auto block) { writer.add_lengths(block); });
  for_each_block<int32_t>(sequences_, [&](auto block) { writer.add_documents(block); });
}

void RejectedFile::add(const std::string& input, const RejectedLine& line) {
  constexpr size_t kShown = 3;
  if (first_.size() < kShown)
    first_.push_back(format("{}, line {}: {}", input, line.line, line.why));
  if (!file_) file_.emplace(path_);
  Json row{{"file", input}, {"line", line.line}, {"why", line.why}, {"bytes", line.bytes}};
  if (valid_utf8_prefix(line.text) == line.text.size())
    row["text"] = line.text;
  else
    row["text_base64"] = base64(line.text);
  // `why` may repeat a piece of a file.
  file_->write(row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  ++count_;
}

void RejectedFile::commit() {
  if (file_) {
    file_->commit();
  } else {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
}

}  // namespace bev
