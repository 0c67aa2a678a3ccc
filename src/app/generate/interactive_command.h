// What a line means that is typed in `bevatron generate --interactive`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bev::app {

struct InteractiveCommand {
  enum class Kind : uint8_t {
    Prompt,   // text: what to continue; empty: a text from its start
    Again,    // the last prompt once more
    Help,     //
    Show,     // all settings
    Set,      // name, value
    Leave,    //
    Unknown,  // text: what was typed
  };
  Kind kind = Kind::Prompt;
  std::string text{}, name{}, value{};
};

// A line that begins with one slash is a command, with two a prompt that begins with one.
InteractiveCommand interactive_command(std::string_view line);

inline constexpr std::string_view kInteractiveHelp =
    "A line is continued; an empty one starts a text. Ctrl-C ends an answer, Ctrl-D leaves.\n"
    "  /again             another continuation of the last prompt\n"
    "  /set               the settings and their values\n"
    "  /set NAME VALUE    changes one: /set temperature 0.8\n"
    "  /quit              leaves\n"
    "  //TEXT             a prompt that begins with a slash\n";

}  // namespace bev::app
