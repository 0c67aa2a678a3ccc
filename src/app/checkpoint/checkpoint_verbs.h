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

// The table of checkpoint list, for whoever shows a folder of checkpoints. `now`: seconds since
// 1970.
void print_checkpoints(const std::vector<CheckpointInfo>& all, int64_t now);

// Seconds since 1970.
int64_t unix_time();

}  // namespace bev::app
