// A schedule is data: one program per pipeline rank, made by a pure function, checked by verify()
// and interpreted by one loop. Gradient accumulation is the program of a single rank.
//
// Every schedule computes a stage's micro-batches in ascending order, forward and backward, so the
// gradients are added up in the same order, and to the same bits, whichever is chosen.
#pragma once

#include "config/choices.h"
#include "config/config.h"
#include "parallel/parallel_layout.h"
#include "pipeline/program.h"
#include "pipeline/schedule_verifier.h"

namespace bev {

// One program per rank. A micro-batch is loaded right before its forward in each chunk; a receive
// comes right before the instruction that needs it, a send right after the one that produces it. A
// slot is taken by Load and free again after Backward or BackwardWeight; Load takes the lowest one.
// REQUIRES: one chunk unless interleaved; one chunk if there is one rank.
std::vector<Program> build_schedule(ScheduleKind kind, const PipelineShape& shape);

// The same without backward: a slot is free again after its Forward.
// REQUIRES: one chunk if there is one rank.
std::vector<Program> forward_only(const PipelineShape& shape);

// The schedule of a step, as a configuration asks for it.

ScheduleKind schedule_kind(const Config& config);

PipelineShape pipeline_shape(const Config& config, int64_t micros);

// The programs of all pipeline ranks. REQUIRES: a checked configuration.
std::vector<Program> step_schedule(const Config& config, int64_t micros);

// In which order a rank computes, for each schedule: pure functions of shape and rank. Loads,
// transfers and slots follow from the order and are added in schedule.cpp.

struct Compute {
  Act act;  // Forward, Backward, BackwardInput or BackwardWeight
  uint16_t chunk;
  uint32_t micro;
};
using ComputeOrder = std::vector<Compute>;

// All forwards, then all backwards.
ComputeOrder gpipe_order(const PipelineShape& shape, int rank);

// As many forwards as there are later ranks, then forward and backward in turn (PipeDream-flush).
ComputeOrder one_f_one_b_order(const PipelineShape& shape, int rank);

// 1F1B over several chunks per rank, as Megatron-LM orders them.
ComputeOrder interleaved_order(const PipelineShape& shape, int rank);

// ZB-H1 of "Zero Bubble Pipeline Parallelism" (Qi et al. 2023): 1F1B with weight gradients
// postponed into the time in which ranks would wait.
ComputeOrder zero_bubble_order(const PipelineShape& shape, int rank);

// Forwards alone, over any number of chunks.
ComputeOrder forward_order(const PipelineShape& shape, int rank);

}  // namespace bev
