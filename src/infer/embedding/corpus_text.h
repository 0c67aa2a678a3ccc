// The texts of a corpus: lines of a file, or a key of the lines of a jsonl file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace bev {

struct CorpusFormat {
  bool is_jsonl = false;
  std::string key = "text";  // jsonl: of the object in each line
};

// Text i is line i: an empty line of plain text is a text, too.
class CorpusText {
 public:
  // Data error: there is no line, a line is not UTF-8, or a line of jsonl has no text under the
  // key. `bytes` must outlive this.
  CorpusText(std::string_view bytes, std::string name, CorpusFormat source);

  int64_t count() const { return count_; }
  uint64_t checksum() const { return checksum_; }  // of all bytes
  const std::string& name() const { return name_; }

  // Calls f(i, text) for the texts [begin, end) in order. REQUIRES: 0 <= begin <= end <= count().
  using Use = FunctionRef<void(int64_t i, std::string_view text)>;
  void read(int64_t begin, int64_t end, Use use) const;
  std::string text(int64_t i) const;

 private:
  std::string_view bytes_;
  std::string name_;
  CorpusFormat format_;
  int64_t count_ = 0;
  uint64_t checksum_ = 0;
  std::vector<size_t> offsets_;  // of every kIndexStep-th line
};

}  // namespace bev
