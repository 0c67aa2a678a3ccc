#include "text/punkt/punkt_parameters.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "text/utf8.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

constexpr size_t kPunktFileLimit = size_t{64} << 20;
enum PunktFile : size_t { kAbbreviations, kCollocations, kStarters, kOrthoContext };

// Calls f(line, number) for every line; \n, \r\n and \r end a line, as in Python's text files.
template <class F>
void for_each_punkt_line(std::string_view text, F f) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find_first_of("\r\n");
    f(text.substr(0, end), number);
    if (end == std::string_view::npos) return;
    text.remove_prefix(text.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
}

void check_utf8(std::string_view text, const std::string& file) {
  const size_t valid = valid_utf8_prefix(text);
  const std::string_view before = text.substr(0, valid);
  BEV_CHECK(valid == text.size(), Data, "{}:{}: not valid UTF-8", file,
            1 + std::count(before.begin(), before.end(), '\n'));
}

// The words of a line before and after its only tab.
std::pair<std::string_view, std::string_view> tab_fields(std::string_view line,
                                                         const std::string& file, int64_t number,
                                                         std::string_view expected) {
  const size_t tab = line.find('\t');
  BEV_CHECK(tab != std::string_view::npos && line.find('\t', tab + 1) == std::string_view::npos,
            Data, "{}:{}: invalid line {}\nexpected {} with a tab between them", file, number,
            in_quotes(line), expected);
  return {line.substr(0, tab), line.substr(tab + 1)};
}

PunktParameters::Words punkt_words(std::string_view text) {
  PunktParameters::Words words;
  for_each_punkt_line(text, [&](std::string_view line, int64_t) { words.emplace(line); });
  return words;
}

std::string sorted_lines(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) {
    text += line;
    text += '\n';
  }
  return text;
}

std::string sorted_lines(const PunktParameters::Words& words) {
  return sorted_lines(std::vector<std::string>(words.begin(), words.end()));
}

}  // namespace

PunktParameters parse_punkt(const PunktTexts& texts, const fs::path& folder) {
  std::array<std::string, kPunktFiles.size()> files;
  for (size_t i = 0; i < files.size(); ++i) {
    files[i] = (folder / kPunktFiles[i]).string();
    check_utf8(texts[i], files[i]);
  }
  PunktParameters parameters;
  parameters.abbreviations = punkt_words(texts[kAbbreviations]);
  parameters.sentence_starters = punkt_words(texts[kStarters]);
  for_each_punkt_line(texts[kCollocations], [&](std::string_view line, int64_t number) {
    if (line.empty()) return;
    tab_fields(line, files[kCollocations], number, "two words");
    parameters.collocations.emplace(line);
  });
  for_each_punkt_line(texts[kOrthoContext], [&](std::string_view line, int64_t number) {
    if (line.empty()) return;
    const auto [word, digits] =
        tab_fields(line, files[kOrthoContext], number, "a word and a number");
    uint32_t flags = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, flags);
    BEV_CHECK(parsed.ec == std::errc() && parsed.ptr == end, Data,
              "{}:{}: invalid orthographic context {}\nexpected a bit set, 0 to 126",
              files[kOrthoContext], number, in_quotes(digits));
    parameters.ortho_context.insert_or_assign(std::string(word), flags);
  });
  return parameters;
}

PunktParameters read_punkt_folder(const fs::path& folder) {
  PunktTexts texts;
  for (size_t i = 0; i < texts.size(); ++i) {
    const fs::path file = folder / kPunktFiles[i];
    std::error_code ignored;
    BEV_CHECK(fs::exists(file, ignored), Data,
              "{}: no such file\nexpected a punkt_tab folder with abbrev_types.txt, "
              "collocations.tab, sent_starters.txt and ortho_context.tab",
              file.string());
    texts[i] = read_text(file, kPunktFileLimit);
  }
  return parse_punkt(texts, folder);
}

PunktTexts punkt_texts(const PunktParameters& parameters) {
  std::vector<std::string> contexts;
  contexts.reserve(parameters.ortho_context.size());
  for (const auto& [word, flags] : parameters.ortho_context)
    contexts.push_back(format("{}\t{}", word, flags));
  PunktTexts texts;
  texts[kAbbreviations] = sorted_lines(parameters.abbreviations);
  texts[kCollocations] = sorted_lines(parameters.collocations);
  texts[kStarters] = sorted_lines(parameters.sentence_starters);
  texts[kOrthoContext] = sorted_lines(std::move(contexts));
  return texts;
}

std::optional<fs::path> find_punkt_folder(const std::string& language) {
  std::vector<fs::path> places;
  if (const char* entries = std::getenv("NLTK_DATA"); entries != nullptr) {
    for (std::string_view rest = entries; !rest.empty();) {
      const size_t colon = rest.find(':');
      if (colon != 0) places.emplace_back(rest.substr(0, colon));
      rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    }
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    places.push_back(fs::path(home) / "nltk_data");
  for (const char* place : {"/usr/share/nltk_data", "/usr/local/share/nltk_data",
                            "/usr/lib/nltk_data", "/usr/local/lib/nltk_data"})
    places.emplace_back(place);
  for (const fs::path& place : places) {
    const fs::path folder = place / "tokenizers" / "punkt_tab" / language;
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder;
  }
  return std::nullopt;
}

}  // namespace bev
