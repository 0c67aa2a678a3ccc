#include "app/generate/interactive_generation.h"

#include <unistd.h>

#include <algorithm>

#include "app/cli/console.h"
#include "app/generate/output_formats.h"
#include "base/error.h"
#include "base/json.h"
#include "comm/communicator.h"

namespace bev::app {

InteractiveGeneration::InteractiveGeneration(const Parts& parts, const GenerationSettings& settings)
    : parts_(parts), settings_(settings) {
  if (is_first()) editor_.emplace(parts.in, parts.out, "> ", parts.interrupt);
}

void InteractiveGeneration::put(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), parts_.out);
  std::fflush(parts_.out);
}

void InteractiveGeneration::print(const std::string& text) const {
  if (is_first()) print_stderr("{}", text);
}

void InteractiveGeneration::run() {
  if (::isatty(::fileno(parts_.in)) == 1)
    print("A line is continued, an empty one starts a text. /help says more, Ctrl-D leaves.\n");
  while (do_command(shared_command())) {
  }
}

std::optional<std::string> InteractiveGeneration::typed_line() {
  for (;;) {
    LineEditor::Entry entry = editor_->read();
    switch (entry.outcome) {
      case LineEditor::Outcome::Line: return std::move(entry.text);
      case LineEditor::Outcome::Closed:
        if (::isatty(::fileno(parts_.in)) == 1) put("\n");
        return std::nullopt;
      case LineEditor::Outcome::Interrupted:
        parts_.interrupt.forget();
        put("\n");
        if (entry.text.empty()) print_stderr("Ctrl-D or /quit leaves\n");
        break;
    }
  }
}

InteractiveCommand InteractiveGeneration::shared_command() {
  constexpr std::string_view kEnd = "end", kLine = "line";
  std::string shared_line;
  if (is_first()) {
    const std::optional<std::string> line = typed_line();
    shared_line = line ? format("{}{}", kLine, *line) : kEnd;
  }
  if (parts_.world.size() > 1) shared_line = broadcast_text(parts_.world, shared_line, 0);
  if (shared_line == kEnd) return {.kind = InteractiveCommand::Kind::Leave};
  return interactive_command(std::string_view(shared_line).substr(kLine.size()));
}

bool InteractiveGeneration::do_command(const InteractiveCommand& command) {
  using Kind = InteractiveCommand::Kind;
  switch (command.kind) {
    case Kind::Leave: return false;
    case Kind::Help: print(std::string(kInteractiveHelp)); break;
    case Kind::Show: print(settings_text(settings_)); break;
    case Kind::Unknown:
      print(format("{}: unknown command; /help lists all\n", in_quotes(command.text)));
      break;
    case Kind::Set: {
      const std::string problem = change_setting(settings_, command.name, command.value);
      if (!problem.empty()) print(problem + "\n");
      // The same seed gives the same answers again.
      if (problem.empty() && command.name == "seed") answers_ = 0;
      break;
    }
    case Kind::Again:
      if (last_) {
        answer(*last_);
      } else {
        print("there is no prompt yet\n");
      }
      break;
    case Kind::Prompt: answer(command.text); break;
  }
  return true;
}

bool InteractiveGeneration::goes_on() {
  const int64_t here = is_first() && parts_.interrupt.is_asked() ? 1 : 0;
  return (parts_.world.size() > 1 ? parts_.world.all_reduce_max_host(here) : here) == 0;
}

void InteractiveGeneration::answer(const std::string& text) {
  std::vector<GenerationRequest> requests;
  try {
    Prompt prompt{.name = "the prompt", .text = text};
    encode_prompt(prompt, parts_.folder, &parts_.tokenizer);
    requests.push_back(request_for(prompt, settings_, answers_));
  } catch (const Error& error) {
    print(format("{}\n", error.what()));
    return;
  }
  last_ = text;
  ++answers_;
  // The text of a T5 does not begin with the prompt.
  if (is_first() && !settings_.source) put(text);
  parts_.interrupt.forget();
  const GenerationTotals totals =
      generate_texts(parts_.batcher, &parts_.tokenizer, settings_.stops, requests,
                     {.on_piece =
                          [&](std::string_view piece) {
                            if (is_first()) put(piece);
                          },
                      .goes_on = [&] { return goes_on(); }});
  if (!is_first()) return;
  put("\n");
  parts_.interrupt.forget();
  if (parts_.shows_rate) print_stderr("{}\n", rate_text(totals));
}

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
  const bool is_verb_only = name.empty();
  const bool is_whole = rest.find_first_not_of(kBlanks) == std::string_view::npos;
  if (verb == "/again" && is_verb_only) return {.kind = Kind::Again};
  if (verb == "/help" && is_verb_only) return {.kind = Kind::Help};
  if (verb == "/quit" && is_verb_only) return {.kind = Kind::Leave};
  if (verb == "/set" && is_verb_only) return {.kind = Kind::Show};
  if (verb == "/set" && !value.empty() && is_whole)
    return {.kind = Kind::Set, .text = {}, .name = name, .value = value};
  return {.kind = Kind::Unknown, .text = std::string(line)};
}

}  // namespace bev::app
