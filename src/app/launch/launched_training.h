// What a launcher has to know of the training that it starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/launch_job.h"

namespace bev::app {

// A training of this program with a number of ranks.
struct LaunchedTraining {
  std::string checkpoints{};  // the folder; empty: none are wanted
  std::string logs{};         // of the ranks; empty: there are none
  int data_ranks = 1;         // ranks that share each batch
};

// The training that a command stands for: asks the program itself, in a process of its own, for the
// configuration of the first of `ranks` ranks. Nothing where it is another verb or another program,
// or where its configuration is not legal for so many; `why` then has the words of the program, if
// it said any.
std::optional<LaunchedTraining> ask_for_training(const std::vector<std::string>& command, int ranks,
                                                 int local_ranks, std::string& why);

// How far a training has come, by its checkpoints. Nothing is known where the folder is not there
// on a machine that does not write it.
ProgressWatch progress_of(const LaunchedTraining& training, bool is_first_machine);

}  // namespace bev::app
