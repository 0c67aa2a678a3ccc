// bevatron checkpoint: what is in a folder of checkpoints, whether it is whole, and what may go.
#include <algorithm>
#include <array>
#include <cstdio>

#include "app/checkpoint_verbs.h"
#include "app/verb.h"
#include "app/verbs.h"
#include "base/check.h"
#include "config/nearest.h"

namespace bev::app {

namespace {

constexpr std::array kParts{
    Verb{"list", "the checkpoints of a folder or run, and whether they can be used",
         checkpoint_list},
    Verb{"verify", "read a checkpoint whole and check every byte", checkpoint_verify},
    Verb{"prune", "remove those that a rule does not keep", checkpoint_prune},
    Verb{"export", "whole tensors as plain safetensors files", checkpoint_export},
};

void print_overview() {
  fmt::print(
      "usage: bevatron checkpoint list | verify | prune | export PATH [--flag VALUE ...]\n\n");
  for (const Verb& part : kParts) fmt::print("  {:<8}{}\n", part.name, part.summary);
  fmt::print(
      "\n`bevatron checkpoint list --help` explains its flags; `bevatron inspect PATH` shows what\n"
      "one holds, `bevatron diff A B` how two differ\n");
}

}  // namespace

int checkpoint(std::span<const std::string> args) {
  BEV_CHECK(!args.empty(), Usage, "checkpoint: say what to do: list, verify, prune or export");
  if (args[0] == "--help" || args[0] == "-h") {
    print_overview();
    return 0;
  }
  const auto part = std::find_if(kParts.begin(), kParts.end(),
                                 [&](const Verb& each) { return each.name == args[0]; });
  if (part != kParts.end()) return part->run(args.subspan(1));
  const std::vector<std::string> names{"list", "verify", "prune", "export"};
  const std::string near = nearest(args[0], names);
  throw Error(ErrorKind::Usage,
              format("checkpoint: {} is none of list, verify, prune and export{}",
                     in_quotes(args[0]), near.empty() ? "" : format("; did you mean {}?", near)));
}

}  // namespace bev::app
