// bevatron tokenizer: makes vocabularies and says what they hold and how well they fit a text.
#include <algorithm>
#include <array>
#include <cstdio>

#include "app/tokenizer_verbs.h"
#include "app/verb.h"
#include "app/verbs.h"
#include "base/check.h"
#include "base/json.h"
#include "config/nearest.h"

namespace bev::app {

namespace {

constexpr std::array kParts{
    Verb{"train", "learn a vocabulary from text files", tokenizer_train},
    Verb{"info", "what a vocabulary holds", tokenizer_info},
    Verb{"eval", "how well a vocabulary fits texts", tokenizer_eval},
};

void print_overview() {
  fmt::print("usage: bevatron tokenizer train | info | eval [--flag VALUE ...]\n\n");
  for (const Verb& part : kParts) fmt::print("  {:<8}{}\n", part.name, part.summary);
  fmt::print("\n`bevatron tokenizer train --help` explains its flags\n");
}

}  // namespace

int tokenizer(std::span<const std::string> args) {
  BEV_CHECK(!args.empty(), Usage, "tokenizer: say what to do: train, info or eval");
  if (args[0] == "--help" || args[0] == "-h") {
    print_overview();
    return 0;
  }
  const auto part = std::find_if(kParts.begin(), kParts.end(),
                                 [&](const Verb& each) { return each.name == args[0]; });
  if (part != kParts.end()) return part->run(args.subspan(1));
  const std::vector<std::string> names{"train", "info", "eval"};
  const std::string near = nearest(args[0], names);
  throw Error(ErrorKind::Usage,
              format("tokenizer: {} is neither train nor info nor eval{}", in_quotes(args[0]),
                     near.empty() ? "" : format("; did you mean {}?", near)));
}

}  // namespace bev::app
