#include "app/generate/interactive_command.h"

#include <algorithm>

namespace bev::app {

namespace {

constexpr std::string_view kBlanks = " \t";

// The next word, which is taken off the text.
std::string next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return std::string(word);
}

}  // namespace

InteractiveCommand interactive_command(std::string_view line) {
  using Kind = InteractiveCommand::Kind;
  if (!line.starts_with('/')) return {.kind = Kind::Prompt, .text = std::string(line)};
  if (line.starts_with("//")) return {.kind = Kind::Prompt, .text = std::string(line.substr(1))};
  std::string_view rest = line;
  const std::string verb = next_word(rest), name = next_word(rest), value = next_word(rest);
  const bool is_alone = name.empty();
  const bool is_whole = rest.find_first_not_of(kBlanks) == std::string_view::npos;
  if (verb == "/again" && is_alone) return {.kind = Kind::Again};
  if (verb == "/help" && is_alone) return {.kind = Kind::Help};
  if (verb == "/quit" && is_alone) return {.kind = Kind::Leave};
  if (verb == "/set" && is_alone) return {.kind = Kind::Show};
  if (verb == "/set" && !value.empty() && is_whole)
    return {.kind = Kind::Set, .text = {}, .name = name, .value = value};
  return {.kind = Kind::Unknown, .text = std::string(line)};
}

}  // namespace bev::app
