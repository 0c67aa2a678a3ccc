// A schedule is data: a list of instructions per pipeline rank, produced by a pure function and
// interpreted by one loop. Gradient accumulation is the program of a single rank.
#pragma once

#include <cstdint>
#include <vector>

namespace bev {

enum class Act : uint8_t {
  Load,      // the micro-batch's tokens to the device
  Forward,   // of the stage; the last stage computes the loss
  Backward,  // input and weight gradients
};

struct Instr {
  Act act;
  uint16_t chunk;  // which of this rank's virtual stages
  uint32_t micro;  // which micro-batch
  uint16_t slot;   // which activation memory
  bool operator==(const Instr&) const = default;
};
using Program = std::vector<Instr>;

struct PipelineShape {
  int ranks = 1, chunks = 1;
  int64_t micros = 1;
};

// One forward, one backward. One program per pipeline rank. REQUIRES: one rank, one chunk.
std::vector<Program> one_f_one_b(const PipelineShape& shape);

// The same, forward only.
std::vector<Program> forward_only(const PipelineShape& shape);

// Activation memories a program uses.
int slots_of(const Program& program);

// Throws an Internal error unless every micro-batch is loaded, computed forward and (with
// `backward`) backward exactly once, in that order, and no slot is reused while in flight.
void verify(const Program& program, const PipelineShape& shape, bool backward);

}  // namespace bev
