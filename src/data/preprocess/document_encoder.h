// Text of a chunk to encoded documents: the work of one thread of preprocessing.
#pragma once

#include <memory>
#include <optional>

#include "data/preprocess/jsonl_reader.h"
#include "data/preprocess/text_reader.h"
#include "data/token_file_writer.h"
#include "text/punkt/punkt_splitter.h"
#include "text/tokenizer.h"

namespace bev {

enum class InputKind : uint8_t { Jsonl, Text };

struct EncoderOptions {
  InputKind kind = InputKind::Jsonl;
  std::vector<std::string> keys{"text"};          // Jsonl: one token file for each
  DocumentBreak documents = DocumentBreak::Line;  // Text
  TokenType type = TokenType::u16;
  bool append_eod = false;
  bool split_sentences = false;
  bool keep_newlines = false;  // what stands between sentences belongs to the one before
  // Null: sentences are split by split_sentences().
  std::shared_ptr<const PunktParameters> punkt{};
  int64_t partitions = 1;  // line i belongs to partition i mod this
};

struct RejectedLine {
  int64_t line = 0;  // counted from 1
  std::string why;
  std::string text;   // as it stands in the file, or the beginning of it
  int64_t bytes = 0;  // of the whole line
};

// What came of a chunk.
struct EncodedChunk {
  std::vector<EncodedDocuments> parts;  // [key][partition]
  std::vector<RejectedLine> rejected;
  int64_t documents = 0, blank_lines = 0, bytes = 0;
};

class DocumentEncoder {
 public:
  // REQUIRES: with append_eod the tokenizer has an end of documents.
  DocumentEncoder(std::unique_ptr<Tokenizer> tokenizer, const EncoderOptions& options);

  // `first_record`: the lines of all inputs before the chunk.
  void encode(const TextChunk& chunk, int64_t first_record, EncodedChunk& out);

 private:
  // Whether the ids of a plain text, valid UTF-8 up to `valid`, hold all its bytes: those of other
  // bytes do only if bytes are tokens.
  bool is_kept(std::string_view text, size_t valid);
  // Empty, or why the line is refused; then nothing of it was kept.
  std::string encode_line(std::string_view line, size_t partition, EncodedChunk& out);
  // One sequence for each text that has tokens.
  void encode_document(std::span<const std::string_view> texts, EncodedDocuments& out);
  std::span<const std::string_view> sentences_of(std::span<const std::string_view> texts);

  std::unique_ptr<Tokenizer> tokenizer_;
  EncoderOptions options_;
  std::optional<PunktSplitter> punkt_;
  JsonlReader reader_;
  std::vector<EncodedDocuments::Sizes> before_;  // for each key
  std::vector<int32_t> ids_, held_;
  std::vector<std::string_view> sentences_;
};

}  // namespace bev
