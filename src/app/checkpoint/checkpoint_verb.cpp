// bevatron checkpoint: what is in a folder of checkpoints, whether it is whole, and what may go.
#include <array>

#include "app/checkpoint/checkpoint_verbs.h"
#include "app/cli/dispatch.h"
#include "app/cli/verbs.h"

namespace bev::app {

namespace {

constexpr std::array kCheckpointParts{
    Verb{"list", "the checkpoints of a folder or run, and whether they can be used",
         checkpoint_list},
    Verb{"verify", "read a checkpoint whole and check every byte", checkpoint_verify},
    Verb{"prune", "remove those that a rule does not keep", checkpoint_prune},
    Verb{"export", "whole tensors as plain safetensors files", checkpoint_export},
};

}  // namespace

int checkpoint(std::span<const std::string> args) {
  return run_part({.name = "checkpoint",
                   .parts = kCheckpointParts,
                   .arguments = "PATH [--flag VALUE ...]",
                   .footer = "`bevatron checkpoint list --help` explains its flags; `bevatron "
                             "inspect PATH` shows what\n"
                             "one holds, `bevatron diff A B` how two differ\n"},
                  args);
}

}  // namespace bev::app
