// What must hold among ranks that exchange tensors, whatever carries them.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace bev::test {

// Every collective and pipe of a world, on one of its ranks. All ranks call it together. `passed`
// hears of each check that has held here; the first that does not throws a Numerics error.
void check_world(Device& device, Communicator& world,
                 const std::function<void(const std::string&)>& passed);

// Seconds of one all_reduce of that many bytes in f32, after a first one.
double seconds_of_all_reduce(Device& device, Communicator& group, size_t bytes);

// Sums over all ranks without an end. `turn` is called before each.
[[noreturn]] void sum_for_ever(Device& device, Communicator& world,
                               const std::function<void(int turn)>& turn);

}  // namespace bev::test
