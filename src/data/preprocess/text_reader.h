// Reads text in chunks of whole lines and cuts it into documents.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "data/preprocess/byte_source.h"

namespace bev {

enum class DocumentBreak : uint8_t { Line, Paragraph, File };
inline constexpr std::string_view kDocumentBreakNames[] = {"line", "paragraph", "file"};

// Calls f for each document, in order. Line: what stands between line ends. Paragraph: what stands
// between blank lines, line ends inside kept. File: all of it. Documents without anything but
// blanks are left out; a line end is "\n" or "\r\n" and, at the end of a document, not part of it.
void for_each_document(std::string_view text, DocumentBreak documents,
                       FunctionRef<void(std::string_view)> f);

// Inputs of any size as pieces of bounded size that hold whole records: lines, paragraphs or files.

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
