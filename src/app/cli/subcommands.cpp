#include "app/cli/subcommands.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "config/parse/nearest.h"

namespace bev::app {

namespace {

// "a, b or c"
std::string listed(std::span<const Verb> parts, std::string_view between, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += format("{}{}", i == 0 ? "" : i + 1 == parts.size() ? last : between, parts[i].name);
  return text;
}

void print_overview(const VerbParts& verb) {
  size_t width = 8;
  for (const Verb& part : verb.parts) width = std::max(width, part.name.size() + 2);
  fmt::print("usage: bevatron {} {} {}\n\n", verb.name, listed(verb.parts, " | ", " | "),
             verb.arguments);
  for (const Verb& part : verb.parts) fmt::print("  {:<{}}{}\n", part.name, width, part.summary);
  fmt::print("\n{}", verb.footer);
}

}  // namespace

int run_part(const VerbParts& verb, std::span<const std::string> args) {
  BEV_CHECK(!args.empty(), Usage, "{}: say what to do: {}", verb.name,
            listed(verb.parts, ", ", " or "));
  if (args[0] == "--help" || args[0] == "-h") {
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
