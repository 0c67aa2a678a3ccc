// bevatron generate --interactive: prompts that a person types, or that come through a pipe, one at
// a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "app/cli/line_editor.h"
#include "app/cli/signals.h"
#include "app/generate/generation_prompts.h"
#include "app/generate/generation_settings.h"
#include "comm/communicator.h"
#include "infer/continuous_batcher.h"

namespace bev::app {

// What a line means that is typed in `bevatron generate --interactive`.

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

// All ranks together: the first reads and prints, the others follow.
class InteractiveGeneration {
 public:
  struct Parts {
    ContinuousBatcher& batcher;
    const ModelFolder& folder;
    Tokenizer& tokenizer;  // of this rank's own
    Communicator& world;
    Interrupt& interrupt;
    bool shows_rate;
    std::FILE* in = stdin;
    std::FILE* out = stdout;
  };
  InteractiveGeneration(const Parts& parts, const GenerationSettings& settings);

  // Until the person leaves or the pipe ends.
  void run();

 private:
  bool is_first() const { return parts_.world.rank() == 0; }
  bool do_command(const InteractiveCommand& command);
  InteractiveCommand shared_command();
  // A line, or nothing at the end.
  std::optional<std::string> typed_line();
  void answer(const std::string& text);
  bool goes_on();
  void print(const std::string& text) const;
  void put(std::string_view text) const;

  Parts parts_;
  GenerationSettings settings_;
  std::optional<LineEditor> editor_;  // of the first rank
  std::optional<std::string> last_;   // prompt
  int64_t answers_ = 0;
};

}  // namespace bev::app
