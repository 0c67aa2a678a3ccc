// Text of any size to token files: chunks are read, encoded by several threads and written in
// order. The files do not depend on the number of threads, and memory does not grow with the input.
#pragma once

#include <optional>

#include "base/file.h"
#include "data/preprocess/document_encoder.h"
#include "data/token_file_writer.h"

namespace bev {

struct PreprocessOptions {
  std::vector<std::string> inputs;  // "-": stdin
  std::filesystem::path prefix;
  InputKind kind = InputKind::Jsonl;
  std::vector<std::string> keys{"text"};
  DocumentBreak documents = DocumentBreak::Line;
  bool append_eod = false, split_sentences = false, keep_newlines = false;
  std::shared_ptr<const PunktParameters> punkt{};  // null: our own rules split sentences
  int64_t workers = 1;
  int64_t partitions = 1;      // line i is written with partition i mod this, one after the other
  int64_t max_rejected = 100;  // more than this end the run
  int64_t longest_line = int64_t{1} << 26;  // bytes
};

struct PreprocessCounts {
  int64_t documents = 0, tokens = 0, bytes = 0;
  int64_t taken = 0;  // bytes of the inputs, compressed as they are
  int64_t rejected = 0, blank_lines = 0;
};

struct PreprocessReport {
  PreprocessCounts counts;
  bool stopped = false;  // by `progress`: nothing was written
  struct File {
    std::filesystem::path prefix;
    int64_t documents = 0, tokens = 0;
  };
  std::vector<File> files;
  std::filesystem::path rejected_path;
  std::vector<std::string> first_rejected;
};

// PREFIX_KEY_document for jsonl, PREFIX for plain text; PREFIX_KEY_sentence and PREFIX_sentence if
// sentences are split.
std::filesystem::path output_prefix(const PreprocessOptions& options, const std::string& key);

// `progress` is called after every chunk; false ends the run. Files appear when all is done. Too
// many rejected lines, or none that is good, are a Data error; PREFIX.rejected.jsonl then tells
// which. REQUIRES: with append_eod the tokenizer has an end of documents.
PreprocessReport preprocess(const PreprocessOptions& options, const Tokenizer& tokenizer,
                            FunctionRef<bool(const PreprocessCounts&)> progress);

// Documents of one partition, set aside on disk until those before it are written.

class PartitionSpool {
 public:
  explicit PartitionSpool(const std::filesystem::path& folder)
      : ids_(folder), lengths_(folder), sequences_(folder) {}

  void add(const EncodedDocuments& documents);
  void write_to(TokenFileWriter& writer) const;

 private:
  SpoolFile ids_, lengths_, sequences_;
};

// Lines that preprocessing could not use, kept for whoever wants to repair them: one JSON object
// per line with file, line, why and the text (in base64 where it is no UTF-8).

class RejectedFile {
 public:
  explicit RejectedFile(const std::filesystem::path& path) : path_(path) {}

  void add(const std::string& input, const RejectedLine& line);
  // Writes the file; when nothing was rejected, removes the one of an earlier run.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  int64_t count() const { return count_; }
  // The first few, as messages show them.
  const std::vector<std::string>& first() const { return first_; }

 private:
  std::filesystem::path path_;
  std::optional<AtomicFile> file_;
  std::vector<std::string> first_;
  int64_t count_ = 0;
};

}  // namespace bev
