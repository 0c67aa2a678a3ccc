// In which order a rank computes, for each schedule: pure functions of shape and rank. Loads,
// transfers and slots follow from the order and are added in schedule.cpp.
#pragma once

#include "pipeline/program.h"

namespace bev {

struct Compute {
  Act act;  // Forward, Backward, BackwardInput or BackwardWeight
  uint16_t chunk;
  uint32_t micro;
};
using ComputeOrder = std::vector<Compute>;

// All forwards, then all backwards.
ComputeOrder gpipe_order(const PipelineShape& shape, int rank);

// As many forwards as there are ranks behind, then forward and backward in turn (PipeDream-flush).
ComputeOrder one_f_one_b_order(const PipelineShape& shape, int rank);

// 1F1B over several chunks per rank, as Megatron-LM orders them.
ComputeOrder interleaved_order(const PipelineShape& shape, int rank);

// ZB-H1 of "Zero Bubble Pipeline Parallelism" (Qi et al. 2023): 1F1B with weight gradients
// postponed into the time in which ranks would wait.
ComputeOrder zero_bubble_order(const PipelineShape& shape, int rank);

// Forwards alone, over any number of chunks.
ComputeOrder forward_order(const PipelineShape& shape, int rank);

}  // namespace bev
