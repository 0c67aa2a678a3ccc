#include "infer/embedding/corpus_text.h"

#include <algorithm>

#include "base/check.h"
#include "checkpoint/checksum.h"
#include "data/preprocess/jsonl_reader.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr int64_t kIndexStep = 256;

// The line at the beginning of `rest`, which is removed with its end.
std::string_view take_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The text of a line of jsonl. Lives until the next read.
std::string_view text_of(JsonlReader& reader, std::string_view line, const std::string& name,
                         int64_t i) {
  std::string problem = reader.read(line);
  if (problem.empty() && reader.is_list(0)) problem = "a list of texts";
  BEV_CHECK(problem.empty(), Data,
            "{}, line {}: {}\nevery line of jsonl is a row: expected an object with one text "
            "(--json-keys names its key)",
            name, i + 1, problem);
  return reader.texts(0).front();
}

}  // namespace

CorpusText::CorpusText(std::string_view bytes, std::string name, CorpusFormat source)
    : bytes_(bytes),
      name_(std::move(name)),
      format_(std::move(source)),
      checksum_(checksum_of(bytes)) {
  BEV_CHECK(!bytes.empty(), Data, "{} is empty; expected a text in each line", name_);
  JsonlReader reader({&format_.key, 1});
  std::string_view rest = bytes_;
  for (; !rest.empty(); ++count_) {
    if (count_ % kIndexStep == 0) offsets_.push_back(bytes_.size() - rest.size());
    const std::string_view line = take_line(rest);
    if (format_.is_jsonl) {
      text_of(reader, line, name_, count_);
    } else {
      const size_t valid = valid_utf8_prefix(line);
      BEV_CHECK(valid == line.size(), Data,
                "{}, line {}: byte {} is not UTF-8, and the tokenizer would embed another text\n"
                "expected UTF-8",
                name_, count_ + 1, valid + 1);
    }
  }
}

void CorpusText::read(int64_t begin, int64_t end, Use use) const {
  if (begin == end) return;
  JsonlReader reader({&format_.key, 1});
  std::string_view rest = bytes_.substr(offsets_[static_cast<size_t>(begin / kIndexStep)]);
  for (int64_t i = begin / kIndexStep * kIndexStep; i < end; ++i) {
    const std::string_view line = take_line(rest);
    if (i >= begin) use(i, format_.is_jsonl ? text_of(reader, line, name_, i) : line);
  }
}

std::string CorpusText::text(int64_t i) const {
  std::string text;
  read(i, i + 1, [&](int64_t, std::string_view of) { text = of; });
  return text;
}

}  // namespace bev
