// Words as NLTK's Punkt finds them: the tokens of a text, their properties and their types.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace bev {

// The bytes of the white space character that the text begins with; 0: none. White space of the
// regular expressions of the Python package `regex`, which is not that of str.isspace().
size_t punkt_white_space_at(std::string_view text);

// The bytes of the character at the beginning of the text that cannot be inside a word: quotes,
// closing and opening brackets, ; : * @ ? and !. 0: another character, or none.
size_t punkt_non_word_at(std::string_view text);

inline bool is_punkt_end(char c) { return c == '.' || c == '?' || c == '!'; }

struct PunktWord {
  std::string_view text;
  bool starts_line = false;
  bool starts_paragraph = false;  // the first word after a blank line

  bool ends_with_period() const { return text.back() == '.'; }
  // One of . ? and ! alone.
  bool is_end_mark() const { return text.size() == 1 && is_punkt_end(text.front()); }
  bool is_ellipsis() const;  // two or more periods, nothing else
  bool is_initial() const;   // a letter and a period
  bool is_letters() const;   // letters, nothing else
  bool is_number() const;    // digits with signs, commas and periods
  bool begins_upper() const;
  bool begins_lower() const;
};

// Finds the words of a text in order. Words do not cross line ends. Any bytes are allowed.
class PunktWords {
 public:
  explicit PunktWords(std::string_view text) : rest_(text) {}

  // False: there are no more words.
  bool next(PunktWord& word);

 private:
  bool next_line();

  std::string_view rest_;  // the lines after the current one
  std::string_view line_;  // the unread part of the current line
  bool starts_line_ = false, starts_paragraph_ = false;
  bool has_more_lines_ = true;
};

inline constexpr std::string_view kPunktNumber = "##number##";

// Replaces `type` by the type of a word: its lower case, or kPunktNumber for a number.
void punkt_type_of(const PunktWord& word, std::string& type);

// The type without its last period. A period alone stays.
std::string_view without_period(std::string_view type);

// True if the type has a letter: it is not only punctuation.
bool has_letter(std::string_view type);

}  // namespace bev
