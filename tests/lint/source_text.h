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
