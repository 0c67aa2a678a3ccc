#include "text/detokenizer.h"

#include <initializer_list>
#include <utility>

#include "text/utf8.h"

namespace bev {

namespace {

// From left to right; what was put in is not looked at again.
std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const size_t found = text.find(from);
    out.append(text.substr(0, found));
    if (found == std::string_view::npos) return out;
    out.append(to);
    text.remove_prefix(found + from.size());
  }
}

using Replacement = std::pair<std::string_view, std::string_view>;

// One after the other, each in all of the text.
void replace_in(std::string& text, std::initializer_list<Replacement> replacements) {
  for (const auto& [from, to] : replacements) text = replaced(text, from, to);
}

// Removes white space inside of a pair of marks: what stands between an opening one and the next
// closing one, line ends too. An opening mark inside of a pair means nothing.
std::string tightened(std::string_view text, char open, char close) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const size_t begin = text.find(open);
    const size_t end = begin == std::string_view::npos ? begin : text.find(close, begin + 1);
    if (end == std::string_view::npos) break;
    out.append(text.substr(0, begin + 1));
    out.append(strip(text.substr(begin + 1, end - begin - 1)));
    out.push_back(close);
    text.remove_prefix(end + 1);
  }
  return out.append(text);
}

// "/' 7/" becomes "/'[0-9]/": so does the expression that those numbers were measured with.
std::string with_slashed_digits(std::string_view text) {
  constexpr std::string_view kOpen = "/' ";
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const size_t found = text.find(kOpen);
    if (found == std::string_view::npos) return out.append(text);
    const std::string_view rest = text.substr(found + kOpen.size());
    const bool matches = rest.size() >= 2 && rest[0] >= '0' && rest[0] <= '9' && rest[1] == '/';
    out.append(text.substr(0, found)).append(matches ? "/'[0-9]/" : "/");
    text = matches ? rest.substr(2) : text.substr(found + 1);
  }
}

std::string from_ptb(std::string_view original) {
  std::string text(original);
  replace_in(text, {{" '", "'"},
                    {" \n", "\n"},
                    {"\n ", "\n"},
                    {" n't", "n't"},
                    {" N ", "1 "},
                    {"$ 1", "$1"},
                    {"# 1", "#1"}});
  return text;
}

std::string from_wikitext(std::string_view original) {
  std::string text = with_slashed_digits(replaced(original, "s '", "s'"));
  replace_in(text, {{" @-@ ", "-"},
                    {" @,@ ", ","},
                    {" @.@ ", "."},
                    {" : ", ": "},
                    {" ; ", "; "},
                    {" . ", ". "},
                    {" ! ", "! "},
                    {" ? ", "? "},
                    {" , ", ", "}});
  for (const std::string_view marks : {"()", "[]", "{}", "\"\"", "''"})
    text = tightened(text, marks[0], marks[1]);
  replace_in(text, {{"= = = =", "===="},
                    {"= = =", "==="},
                    {"= =", "=="},
                    {" \u00B0 ", "\u00B0"},
                    {" \n", "\n"},
                    {"\n ", "\n"},
                    {" N ", " 1 "},
                    {" 's", "'s"}});
  return text;
}

}  // namespace

Detokenizer detokenizer_for(std::string_view path) {
  constexpr std::pair<std::string_view, Detokenizer> kParts[] = {{"ptb", Detokenizer::Ptb},
                                                                 {"wiki", Detokenizer::Wikitext},
                                                                 {"lambada", Detokenizer::Lambada}};
  for (const auto& [part, rules] : kParts)
    if (path.find(part) != std::string_view::npos) return rules;
  return Detokenizer::None;
}

std::string detokenize(std::string_view text, Detokenizer rules) {
  switch (rules) {
    case Detokenizer::Ptb: return from_ptb(text);
    case Detokenizer::Wikitext: return from_wikitext(text);
    case Detokenizer::None:
    case Detokenizer::Lambada: break;
  }
  return std::string(text);
}

}  // namespace bev
