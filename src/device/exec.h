// Exec: everything an op needs besides its operands.
#pragma once

#include "device/device.h"
#include "device/memory.h"
#include "device/op_cost.h"
#include "device/trace.h"

namespace bev {

struct Exec {
  Device& device;
  Stream stream;
  Arena& keep;                 // until the backward of this micro-batch has run
  Arena& scratch;              // until the enclosing ArenaScope ends
  Arena& recompute;            // until the blocks being recomputed are done
  CostLog* cost = nullptr;     // when set, every op and collective adds a record
  Trace* trace = nullptr;      // when set, every op is timed
  WaitTimer* waits = nullptr;  // when set, what it waits for other ranks is timed

  // The same execution with activations kept in another arena.
  Exec with_keep(Arena& arena) const {
    return {device, stream, arena, scratch, recompute, cost, trace, waits};
  }
  // Work beside it, which begins when what was issued so far is done. Scratch memory is not for it:
  // what is issued here later has no regard for it.
  Exec on_stream(Stream other) const {
    other.wait(stream.record());
    return {device, other, keep, scratch, recompute, cost, trace, waits};
  }
  // What is issued from now on begins when the event has passed; the time it takes shows in the
  // trace.
  void wait(const char* what, const Event& event) const {
    if (event.handle == 0) return;
    if (trace != nullptr) trace->begin(what, stream);
    if (waits != nullptr) waits->begin(stream);
    stream.wait(event);
    if (waits != nullptr) waits->end(stream);
    if (trace != nullptr) trace->end(stream);
  }
};

}  // namespace bev
