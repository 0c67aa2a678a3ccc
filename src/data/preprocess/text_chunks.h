// Inputs of any size as pieces of bounded size that hold whole records: lines, paragraphs or files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/preprocess/byte_source.h"
#include "data/preprocess/documents.h"

namespace bev {

struct TextChunk {
  std::string text;        // whole records
  size_t input = 0;        // which of the inputs
  int64_t first_line = 0;  // of the chunk in its input, counted from 1
  int64_t taken = 0;       // bytes of all inputs read so far, compressed as they are
  // A record longer than allowed: `text` is its beginning, this its length. 0: none.
  int64_t cut_record = 0;
};

class TextChunks {
 public:
  struct Options {
    DocumentBreak records = DocumentBreak::Line;
    size_t chunk = size_t{1} << 20;           // bytes, about
    size_t longest_record = size_t{1} << 26;  // bytes
  };

  TextChunks(std::vector<std::string> inputs, const Options& options);

  // False at the end. The text of `chunk` is replaced, its memory used again. Data errors name the
  // input.
  bool next(TextChunk& chunk);

 private:
  bool open_next();
  bool fill(std::string& text, size_t size);
  void skip_record(TextChunk& chunk);

  std::vector<std::string> inputs_;
  Options options_;
  size_t input_ = 0;  // the next to be opened
  std::unique_ptr<ByteSource> source_;
  std::string rest_;  // read, but of the next chunk
  int64_t line_ = 1;  // of the first byte of rest_
  int64_t taken_before_ = 0;
};

}  // namespace bev
