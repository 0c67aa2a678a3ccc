#include "data/preprocess/documents.h"

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

}  // namespace bev
