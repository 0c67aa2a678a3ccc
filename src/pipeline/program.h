// The program of a pipeline rank: a list of instructions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/op_cost.h"

namespace bev {

enum class Act : uint8_t {
  Load,            // the micro-batch's tokens to the device
  RecvForward,     // waits for the output of the stage before
  Forward,         // of the stage; the last stage computes the loss
  SendForward,     // posted
  RecvBackward,    // waits for the output's gradient from the next stage
  Backward,        // input and weight gradients
  BackwardInput,   // input gradient; weight gradients are deferred
  BackwardWeight,  // the deferred weight gradients
  SendBackward,    // posted
};
std::string_view name_of(Act act);
// Backward counts as BackwardInput; weight gradients have their own phase.
Phase phase_of(Act act);

struct Instr {
  Act act;
  uint16_t chunk;  // which of this rank's stages
  uint32_t micro;  // which micro-batch
  uint16_t slot;   // which activation memory of this chunk
  bool operator==(const Instr&) const = default;
};
using Program = std::vector<Instr>;

// "rank 1, instruction 7 (Forward of micro-batch 2, chunk 0, slot 1)".
std::string place_of(int rank, size_t index, const Instr& instr);

// Activation memories a program uses: of one chunk, and of all.
int slots_of(const Program& program, int chunk);
int slots_of(const Program& program);

// The layers are split into ranks * chunks stages, assigned round-robin: stage s is chunk
// s / ranks of rank s % ranks.
struct PipelineShape {
  int ranks = 1, chunks = 1;
  int64_t micros = 1;
  bool gradient_replaces_input = false;  // in the memory of a slot

  int stage(int rank, int chunk) const { return chunk * ranks + rank; }
  int last_stage() const { return ranks * chunks - 1; }
};

}  // namespace bev
