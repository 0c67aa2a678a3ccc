// The text of a C++ file as the lint checks see it: lines, with comments and literals told apart
// from code. A small lexer, not a parser: it knows comments, strings, raw strings and characters.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bev::lint {

struct SourceText {
  std::vector<std::string> raw;   // the lines as they stand, without their newline
  std::vector<std::string> code;  // the same lines; comments and the inside of literals are blank
};

SourceText source_text(std::string_view text);

// The text with blanks in place of its comments; the second also blanks the contents of literals.
// Every other character keeps its offset.
std::string blank_comments(std::string_view text);
std::string blank_comments_and_literals(std::string_view text);

// The line, from 1, of an offset.
int line_at(std::string_view text, size_t offset);

bool is_word_char(char c);

// Whether a string or a character begins with the quote at `at`; in 1'000'000 it separates digits.
bool opens_literal(std::string_view text, size_t at);

// The position after the closing quote of a literal whose opening quote is at `open`. A literal
// ends with its line at the latest, so that one stray quote does not hide the rest of the file.
size_t after_literal(std::string_view text, size_t open);

// The whole file. Throws std::runtime_error naming it when it cannot be read.
std::string read_file(const std::filesystem::path& path);

struct Include {
  int line;  // from 1
  std::string path;
  bool angled;  // <path> rather than "path"
};
std::vector<Include> includes(const SourceText& source);

struct Identifier {
  std::string text;
  size_t begin;  // in its line
};
std::vector<Identifier> identifiers(std::string_view line);

// The words of a name, in lower case: "kMaxRank" -> k, max, rank; "rank_" -> rank; "AdamV2" ->
// adam, v2.
std::vector<std::string> words_of(std::string_view name);

}  // namespace bev::lint
