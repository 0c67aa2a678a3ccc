// The parts of bevatron checkpoint, one file each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_survey.h"

namespace bev::app {

int checkpoint_list(std::span<const std::string> args);
int checkpoint_verify(std::span<const std::string> args);
int checkpoint_prune(std::span<const std::string> args);
int checkpoint_export(std::span<const std::string> args);

// The table of checkpoint list.
void print_checkpoints(const std::vector<CheckpointInfo>& all);

}  // namespace bev::app
