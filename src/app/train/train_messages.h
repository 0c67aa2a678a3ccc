// What `bevatron train` says around the training itself.
#pragma once

#include <string>

#include "app/cli/console.h"
#include "app/train/preflight.h"
#include "train/train_loop.h"

namespace bev::app {

// What will be trained, on what, from what and where to.
void print_start(const Voice& voice, const Config& config, const Preflight& preflight);
// What is known after the first iteration: how the device computes, and in how much memory.
void print_after_first(const Voice& voice, const Config& config, const Plan& plan, Device& device);

// "complete", "stopped by SIGTERM".
std::string ending_words(const TrainSummary& summary);
// The last lines of the record, for scripts: Megatron-LM's own where it has one, and one that says
// all: "run ended | reason: ... | iteration: 120/1000 | checkpoint: PATH | complete: no |".
std::string exit_lines(const TrainSummary& summary, const std::string& checkpoint);
void print_end(const Voice& voice, const TrainSummary& summary, const std::string& curve);
void print_next_steps(const Voice& voice, const Config& config);

// Throws when the run did not end well. `saved`: what is there of it. REQUIRES: it is there by now.
void require_good_end(const TrainSummary& summary, const std::string& saved);

}  // namespace bev::app
