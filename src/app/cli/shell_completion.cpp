#include <vector>

#include "app/cli/dispatch.h"
#include "base/check.h"
#include "base/format.h"
#include "config/megatron/megatron_flags.h"
#include "config/parse/field.h"
#include "config/parse/notation.h"
#include "config/presets.h"

namespace bev::app {

namespace {

// Words as a shell string over several lines.
class Words {
 public:
  void add(std::string_view word) {
    if (column_ + word.size() + 1 > 96) {
      text_ += "\n";
      column_ = 0;
    } else if (column_ > 0) {
      text_ += " ";
      ++column_;
    }
    text_ += word;
    column_ += word.size();
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t column_ = 0;
};

std::string verb_words(std::span<const Verb> verbs) {
  Words words;
  for (const Verb& verb : verbs) words.add(verb.name);
  for (const std::string_view name : {"completion", "help"}) words.add(name);
  return words.text();
}

std::string field_words() {
  Words words;
  for (const Field& field : fields()) words.add("--" + field.path);
  return words.text();
}

// Those that are refused would only lead astray.
std::string megatron_words() {
  Words words;
  for (const Field& field : fields())
    for (const Alias& alias : field.about.aliases)
      if (alias.part <= 1) words.add(alias.flag);
  for (const FlagTopic& topic : megatron_topics()) {
    if (topic.kind == FlagClass::Later) continue;
    for (const MegatronFlag& flag : topic.flags)
      for (const std::string_view spelling : split_words(flag.flag)) words.add(spelling);
  }
  return words.text();
}

std::string one_case(std::string_view pattern, const std::string& words) {
  return format("    {}) choices=\"{}\" ;;\n", pattern, words);
}

// The words that may follow a flag with choices, as branches of a `case`.
std::string choice_cases() {
  std::string out;
  for (const Field& field : fields()) {
    if (field.type != FieldType::Choice) continue;
    Words ours;
    for (const std::string_view choice : field.choices) ours.add(choice);
    std::string pattern = "--" + field.path;
    for (const Alias& alias : field.about.aliases) {
      if (!alias.sets.empty()) continue;
      if (alias.values.empty()) {
        pattern += format(" | {}", alias.flag);
        continue;
      }
      Words theirs;
      for (size_t i = 0; i < field.choices.size(); ++i) {
        if (alias.values[i].empty()) theirs.add(field.choices[i]);
        for (const std::string_view word : split_words(alias.values[i])) theirs.add(word);
      }
      out += one_case(alias.flag, theirs.text());
    }
    out += one_case(pattern, ours.text());
  }
  Words names;
  for (const Preset& preset : presets()) names.add(preset.name);
  return out + one_case("--model.preset", names.text());
}

// What must follow a verb, as branches of a `case`.
std::string part_cases(std::span<const Verb> verbs) {
  std::string out;
  for (const Verb& verb : verbs)
    if (!verb.parts.empty()) out += format("    {}) parts=\"{}\" ;;\n", verb.name, verb.parts);
  return out;
}

std::string bash_function(std::span<const Verb> verbs) {
  return format(R"(_bevatron() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}}
  local choices="" parts=""
  local verbs="{}"
  local fields="{}"
  local megatron="{}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$verbs" -- "$cur"))
    return
  fi
  case $verb in
    help) choices="$verbs configuration man" ;;
    completion) choices="bash zsh" ;;
{}  esac
  if [ -n "$parts" ] && [ "$COMP_CWORD" -eq 2 ]; then choices=$parts; fi
  case $prev in
{}  esac
  if [ -n "$choices" ]; then
    COMPREPLY=($(compgen -W "$choices" -- "$cur"))
    return
  fi
  case $cur in
    -*)
      local help flags
      help=$("${{COMP_WORDS[0]}}" "$verb" ${{parts:+"${{COMP_WORDS[2]}}"}} --help 2>/dev/null)
      flags=$(printf '%s\n' "$help" | sed -n 's/^  \(--[a-z0-9-]*\)\( .*\)\{{0,1\}}$/\1/p')
      case $help in *--{}*) flags="$flags $fields $megatron" ;; esac
      COMPREPLY=($(compgen -W "$flags" -- "$cur"))
      ;;
    *) COMPREPLY=($(compgen -f -- "$cur")) ;;
  esac
}}
complete -o filenames -F _bevatron bevatron
)",
                verb_words(verbs), field_words(), megatron_words(), part_cases(verbs),
                choice_cases(), fields()[0].path);
}

}  // namespace

std::string completion_script(std::span<const Verb> verbs, std::string_view shell) {
  BEV_CHECK(shell == "bash" || shell == "zsh", Usage,
            "there is no completion for \"{}\"; there is bash and zsh", shell.substr(0, 80));
  const std::string use =
      format("# Completion of bevatron. To use it: source <(bevatron completion {})\n", shell);
  if (shell == "bash") return use + bash_function(verbs);
  // Also works as the file _bevatron in a folder of fpath: compinit has run then, and the first
  // completion runs the script as the body of the function _bevatron.
  return "#compdef bevatron\n" + use +
         "(( $+functions[compdef] )) || { autoload -U +X compinit && compinit }\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_function(verbs) +
         "if [ \"${funcstack[1]}\" = _bevatron ]; then\n"
         "  _bash_complete -o filenames -F _bevatron\n"
         "fi\n";
}

}  // namespace bev::app
