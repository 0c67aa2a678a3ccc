#include "lint/source_text.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace bev::lint {

namespace {

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Where the run that begins at `begin` and ends with `end` is over; the end of the text without
// one.
size_t after(std::string_view text, std::string_view end, size_t begin) {
  const size_t found = text.find(end, begin);
  return found == std::string_view::npos ? text.size() : found + end.size();
}

// Overwrites [begin, end) with blanks; lines stay lines.
void blank(std::string& text, size_t begin, size_t end) {
  for (size_t at = begin; at < end; ++at) {
    if (text[at] != '\n') text[at] = ' ';
  }
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string blanked(std::string_view text, bool literals) {
  std::string code(text);
  size_t at = 0;
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    size_t end = at + 1;
    if (rest.starts_with("//")) {
      end = std::min(text.find('\n', at), text.size());
      blank(code, at, end);
    } else if (rest.starts_with("/*")) {
      end = after(text, "*/", at + 2);
      blank(code, at, end);
    } else if (rest.starts_with("R\"") && (at == 0 || !is_word_char(text[at - 1]))) {
      const size_t open = std::min(text.find('(', at), text.size());
      const std::string close = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
      end = after(text, close, open);
      if (literals) blank(code, at + 2, end - 1);
    } else if (opens_literal(text, at)) {
      end = after_literal(text, at);
      if (literals) blank(code, at + 1, end - 1);
    }
    at = end;
  }
  return code;
}

}  // namespace

int line_at(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool opens_literal(std::string_view text, size_t at) {
  return text[at] == '"' || (text[at] == '\'' && (at == 0 || !is_word_char(text[at - 1])));
}

size_t after_literal(std::string_view text, size_t open) {
  size_t at = open + 1;
  while (at < text.size() && text[at] != text[open] && text[at] != '\n') {
    at += text[at] == '\\' ? 2 : 1;
  }
  return std::min(at + 1, text.size());
}

std::string blank_comments(std::string_view text) { return blanked(text, false); }

std::string blank_comments_and_literals(std::string_view text) { return blanked(text, true); }

SourceText source_text(std::string_view text) {
  return {.raw = lines_of(text), .code = lines_of(blank_comments_and_literals(text))};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<Include> includes(const SourceText& source) {
  std::vector<Include> found;
  for (size_t i = 0; i < source.raw.size(); ++i) {
    // The path is a literal, so it is read from the raw line, once the code says it is no comment.
    const std::vector<Identifier> words = identifiers(source.code[i]);
    if (words.empty() || words.front().text != "include") continue;
    const size_t behind = words.front().begin + words.front().text.size();
    const std::string_view before = std::string_view(source.code[i]).substr(0, words.front().begin);
    const size_t mark = before.find_first_not_of(" \t");
    const size_t open = source.raw[i].find_first_of("<\"", behind);
    if (mark == std::string_view::npos || before[mark] != '#' || open == std::string::npos)
      continue;
    const size_t close = source.raw[i].find_first_of(">\"", open + 1);
    found.push_back({.line = static_cast<int>(i) + 1,
                     .path = source.raw[i].substr(open + 1, close - open - 1),
                     .angled = source.raw[i][open] == '<'});
  }
  return found;
}

std::vector<Identifier> identifiers(std::string_view line) {
  std::vector<Identifier> found;
  for (size_t begin = 0; begin < line.size();) {
    size_t end = begin;
    while (end < line.size() && is_word_char(line[end])) ++end;
    if (end > begin && !is_digit(line[begin])) {
      found.push_back({std::string(line.substr(begin, end - begin)), begin});
    }
    begin = std::max(end, begin + 1);
  }
  return found;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_word_char(name[i]) || name[i] == '_') {
      finish();
      continue;
    }
    // A capital begins a word, but not inside a run of capitals: MLPBlock is mlp, block.
    const bool follows_small = i > 0 && !is_upper(name[i - 1]);
    const bool precedes_small =
        i + 1 < name.size() && std::islower(static_cast<unsigned char>(name[i + 1])) != 0;
    if (is_upper(name[i]) && (follows_small || precedes_small)) finish();
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  finish();
  return words;
}

}  // namespace bev::lint
