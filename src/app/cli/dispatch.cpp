#include "app/cli/dispatch.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/man_page.h"
#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text_table.h"
#include "config/megatron/megatron_scripts.h"
#include "config/parse/arg_scanner.h"
#include "config/parse/help.h"
#include "config/parse/problem.h"

namespace bev::app {

namespace {

// `names`: what else may be meant.
const Verb& find_verb(std::span<const Verb> verbs, const std::string& name,
                      std::vector<std::string> names = {"help", "completion"}) {
  const auto found =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.name == name; });
  if (found != verbs.end()) return *found;
  std::string list;
  for (const Verb& verb : verbs) {
    names.emplace_back(verb.name);
    list += format("{}, ", verb.name);
  }
  const std::string near = nearest(name, names);
  const std::string hint =
      near.empty() ? format("there are {}help", list) : format("did you mean {}?", near);
  throw Error(ErrorKind::Usage, format("there is no verb \"{}\"; {}", name.substr(0, 80), hint));
}

constexpr std::string_view kCompletionHelp =
    "usage: bevatron completion bash | zsh\n\n"
    "Prints a script that lets the shell complete verbs, flags and choices:\n"
    "  source <(bevatron completion bash)\n";

int completion(std::span<const Verb> verbs, std::span<const std::string> args) {
  const std::string shell = args.empty() ? "" : args[0];
  if (asks_for_help(shell)) {
    fmt::print("{}", kCompletionHelp);
  } else {
    fmt::print("{}", completion_script(verbs, shell));
  }
  return 0;
}

int help(std::span<const Verb> verbs, std::span<const std::string> args) {
  BEV_CHECK(args.size() <= 1, Usage,
            "help takes at most one argument, but {} is given after {}; `bevatron VERB PART "
            "--help` prints the flags of a part",
            in_quotes(args[1]), in_quotes(args[0]));
  if (args.empty() || args[0] == "help") {
    fmt::print("{}", overview(verbs));
    return 0;
  }
  if (args[0] == "completion") {
    fmt::print("{}", kCompletionHelp);
    return 0;
  }
  if (args[0] == "configuration") {
    fmt::print("{}", configuration_page());
    return 0;
  }
  if (args[0] == "man") {
    fmt::print("{}", man_page(verbs));
    return 0;
  }
  const std::vector<std::string> ask{"--help"};
  return find_verb(verbs, args[0], {"help", "completion", "configuration", "man"}).run(ask);
}

}  // namespace

std::span<const ExitCode> exit_codes() {
  static constexpr std::array kCodes{
      ExitCode{0, "success"},
      ExitCode{1, "diff: the tensors differ"},
      ExitCode{2, "wrong usage or configuration"},
      ExitCode{3, "bad or missing file"},
      ExitCode{4, "device or memory"},
      ExitCode{5, "communication"},
      ExitCode{6, "numbers that are not finite or differ"},
      ExitCode{70, "a bug in bevatron"},
  };
  return kCodes;
}

std::string overview(std::span<const Verb> verbs) {
  TextTable row("  {:<12}{}");
  row.text =
      "bevatron trains large language models.\n\n"
      "usage: bevatron VERB [CONFIG.toml] [--section.field VALUE ...]\n\n";
  for (const Verb& verb : verbs) row(verb.name, verb.summary);
  row("completion", "a script that lets the shell complete command lines");
  row("help", "this overview; `bevatron help VERB` explains a verb,");
  row("", "`bevatron help configuration` all fields and flags,");
  row("", "`bevatron help man` prints the manual page");
  row.text += "\nEvery field of the configuration is a flag; Megatron-LM flags work too.\n";
  std::string codes = "Exit codes:";
  for (const ExitCode& each : exit_codes())
    codes += format("{} {} {}", codes.ends_with(':') ? "" : ",", each.code, each.meaning);
  return row.text + wrap(codes + ".", 80, 0) + "\n";
}

int dispatch(std::span<const Verb> verbs, std::span<const std::string> given) {
  const std::vector<std::string> command = as_own_command(given);
  const std::span<const std::string> args = command;
  if (args.empty()) {
    std::string names;
    for (const Verb& verb : verbs) names += format("{} | ", verb.name);
    print_stderr(
        "usage: bevatron {}help [CONFIG.toml] [--section.field VALUE ...]\n"
        "`bevatron help` explains\n",
        names);
    return exit_code(ErrorKind::Usage);
  }
  const std::span<const std::string> rest = args.subspan(1);
  if (args[0] == "help" || asks_for_help(args[0])) return help(verbs, rest);
  if (args[0] == "completion") return completion(verbs, rest);
  if (args[0] == "--version") return find_verb(verbs, "version").run(rest);
  return find_verb(verbs, args[0]).run(rest);
}

namespace {

// "a, b or c"
std::string listed(std::span<const Verb> parts, std::string_view between, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += format("{}{}", i == 0 ? "" : i + 1 == parts.size() ? last : between, parts[i].name);
  return text;
}

void print_overview(const Subcommands& verb) {
  size_t width = 8;
  for (const Verb& part : verb.parts) width = std::max(width, part.name.size() + 2);
  fmt::print("usage: bevatron {} {} {}\n\n", verb.name, listed(verb.parts, " | ", " | "),
             verb.arguments);
  for (const Verb& part : verb.parts) fmt::print("  {:<{}}{}\n", part.name, width, part.summary);
  fmt::print("\n{}", verb.footer);
}

}  // namespace

int run_part(const Subcommands& verb, std::span<const std::string> args) {
  BEV_CHECK(!args.empty(), Usage, "{}: say what to do: {}", verb.name,
            listed(verb.parts, ", ", " or "));
  if (asks_for_help(args[0])) {
    print_overview(verb);
    return 0;
  }
  std::vector<std::string> names;
  for (const Verb& part : verb.parts) {
    if (part.name == args[0]) return part.run(args.subspan(1));
    names.emplace_back(part.name);
  }
  const std::string near = nearest(args[0], names);
  const std::string none = verb.parts.size() > 3
                               ? "none of " + listed(verb.parts, ", ", " and ")
                               : "neither " + listed(verb.parts, " nor ", " nor ");
  throw Error(ErrorKind::Usage, format("{}: {} is {}{}", verb.name, in_quotes(args[0]), none,
                                       near.empty() ? "" : format("; did you mean {}?", near)));
}

}  // namespace bev::app
