// Parameters of NLTK's Punkt sentence splitter, and the four files of a punkt_tab folder with them.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace bev {

// How a word was seen in the training text: in upper or lower case, at the beginning of a sentence,
// inside one, or at a place that may be either.
enum PunktOrthoFlag : uint32_t {
  kBeginsUpper = 1 << 1,
  kInsideUpper = 1 << 2,
  kUnknownUpper = 1 << 3,
  kBeginsLower = 1 << 4,
  kInsideLower = 1 << 5,
  kUnknownLower = 1 << 6,
};
inline constexpr uint32_t kAnyUpper = kBeginsUpper | kInsideUpper | kUnknownUpper;
inline constexpr uint32_t kAnyLower = kBeginsLower | kInsideLower | kUnknownLower;

struct PunktParameters {
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library asks for it
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Words = std::unordered_set<std::string, Hash, std::equal_to<>>;

  Words abbreviations;      // without their last period
  Words collocations;       // "first<TAB>second": a period after the first ends no sentence
  Words sentence_starters;  // words that often begin a sentence
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ortho_context;  // flags above

  uint32_t ortho(std::string_view type) const {
    const auto found = ortho_context.find(type);
    return found == ortho_context.end() ? 0 : found->second;
  }
};

// Whether a word in lower case, without its last period, is an abbreviation, or its part after the
// last hyphen is one.
inline bool is_punkt_abbreviation(std::string_view stem,
                                  const PunktParameters::Words& abbreviations) {
  return abbreviations.contains(stem) || abbreviations.contains(stem.substr(stem.rfind('-') + 1));
}

inline constexpr std::array<std::string_view, 4> kPunktFiles{
    "abbrev_types.txt", "collocations.tab", "sent_starters.txt", "ortho_context.tab"};

// The contents of the four files, in the order of kPunktFiles.
using PunktTexts = std::array<std::string, kPunktFiles.size()>;

// Text that is not valid UTF-8 or not in the format of its file is a Data error that names the file
// in `folder` and the line.
PunktParameters parse_punkt(const PunktTexts& texts, const std::filesystem::path& folder);

// Reads the four files of a folder. A missing or unreadable file is a Data error that names it.
PunktParameters read_punkt_folder(const std::filesystem::path& folder);

// The contents of the four files, lines sorted by code point.
PunktTexts punkt_texts(const PunktParameters& parameters);

// The folder of a language where NLTK keeps its data: the entries of $NLTK_DATA, then ~/nltk_data,
// then the system folders, each with tokenizers/punkt_tab/LANGUAGE. None: no such folder.
// REQUIRES: the language is a plain file name.
std::optional<std::filesystem::path> find_punkt_folder(const std::string& language);

}  // namespace bev
