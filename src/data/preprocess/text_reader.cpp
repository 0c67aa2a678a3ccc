#include "data/preprocess/text_reader.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

std::string_view without_line_end(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

void for_each_document(std::string_view text, DocumentBreak documents,
                       FunctionRef<void(std::string_view)> f) {
  const auto emit = [&](std::string_view document) {
    if (!is_blank(document)) f(without_line_end(document));
  };
  if (documents == DocumentBreak::File) return emit(text);
  size_t begin = 0;  // of the paragraph
  for (size_t line = 0; line < text.size();) {
    const size_t newline = text.find('\n', line);
    const size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    const std::string_view here = text.substr(line, next - line);
    if (documents == DocumentBreak::Line) {
      emit(here);
    } else if (is_blank(here)) {
      emit(text.substr(begin, line - begin));
      begin = next;
    }
    line = next;
  }
  if (documents == DocumentBreak::Paragraph) emit(text.substr(begin));
}

namespace {

// Where the last whole record of the text ends; 0 when there is none.
size_t whole_records(std::string_view text, DocumentBreak records) {
  if (records == DocumentBreak::File) return 0;
  for (size_t newline = text.rfind('\n'); newline != std::string_view::npos;
       newline = newline == 0 ? std::string_view::npos : text.rfind('\n', newline - 1)) {
    if (records == DocumentBreak::Line) return newline + 1;
    // A paragraph ends at a line without anything but blanks.
    const size_t before = text.find_last_not_of(" \t\r\f\v", newline == 0 ? 0 : newline - 1);
    if (newline > 0 && before != std::string_view::npos && text[before] == '\n') return newline + 1;
  }
  return 0;
}

int64_t lines_in(std::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TextChunks::TextChunks(std::vector<std::string> inputs, const Options& options)
    : inputs_(std::move(inputs)), options_(options) {
  // A longer chunk could hold a longer record.
  options_.chunk = std::min(options_.chunk, options_.longest_record);
}

bool TextChunks::open_next() {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (source_) taken_before_ += source_->taken();
  source_.reset();
  if (input_ == inputs_.size()) return false;
  source_ = std::make_unique<ByteSource>(inputs_[input_++]);
  line_ = 1;
  rest_.clear();
  fill(rest_, kByteOrderMark.size());
  if (rest_ == kByteOrderMark) rest_.clear();
  return true;
}

// Whether there was more to read.
bool TextChunks::fill(std::string& text, size_t size) {
  const size_t have = text.size();
  if (have >= size) return true;
  text.resize(size);
  const size_t got = source_->read({text.data() + have, size - have});
  text.resize(have + got);
  return have + got == size;
}

bool TextChunks::next(TextChunk& chunk) {
  chunk.cut_record = 0;
  while (!source_ || rest_.empty()) {
    if (source_) {
      if (fill(rest_, options_.chunk) || !rest_.empty()) break;
    }
    if (!open_next()) return false;
  }
  chunk.text.assign(rest_);
  rest_.clear();
  chunk.input = input_ - 1;
  chunk.first_line = line_;
  size_t end = 0;
  for (size_t size = options_.chunk;; size = std::min(2 * size, options_.longest_record + 1)) {
    const bool more = fill(chunk.text, size);
    end = more ? whole_records(chunk.text, options_.records) : chunk.text.size();
    if (end > 0 || !more) break;
    if (chunk.text.size() > options_.longest_record) {
      skip_record(chunk);
      return true;
    }
  }
  rest_.assign(chunk.text, end);
  chunk.text.resize(end);
  line_ += lines_in(chunk.text);
  chunk.taken = taken_before_ + source_->taken();
  return true;
}

void TextChunks::skip_record(TextChunk& chunk) {
  constexpr size_t kShown = 4096;
  int64_t length = static_cast<int64_t>(chunk.text.size());
  chunk.text.resize(kShown);
  for (bool more = true; more;) {
    rest_.clear();
    more = fill(rest_, options_.chunk);
    const size_t newline = rest_.find('\n');
    if (newline != std::string::npos) {
      length += static_cast<int64_t>(newline);
      rest_.erase(0, newline + 1);
      break;
    }
    length += static_cast<int64_t>(rest_.size());
    if (!more) rest_.clear();
  }
  ++line_;
  chunk.cut_record = length;
  chunk.taken = taken_before_ + source_->taken();
}

}  // namespace bev
