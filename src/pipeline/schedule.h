// A schedule is data: one program per pipeline rank, made by a pure function, checked by verify()
// and interpreted by one loop. Gradient accumulation is the program of a single rank.
//
// Every schedule computes a stage's micro-batches in ascending order, forward and backward, so the
// gradients are added up in the same order, and to the same bits, whichever is chosen.
#pragma once

#include "config/choices.h"
#include "pipeline/program.h"
#include "pipeline/schedule_verifier.h"

namespace bev {

// One program per rank. A micro-batch is loaded right before its forward in each chunk; receives
// stand right before what needs them, sends right behind what makes them. A slot is taken by Load
// and free again after Backward or BackwardWeight; Load takes the lowest one.
// REQUIRES: one chunk unless interleaved; one chunk if there is one rank.
std::vector<Program> build_schedule(ScheduleKind kind, const PipelineShape& shape);

// The same without backward: a slot is free again after its Forward.
// REQUIRES: one chunk if there is one rank.
std::vector<Program> forward_only(const PipelineShape& shape);

}  // namespace bev
