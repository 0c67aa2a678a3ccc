// Flags of Megatron-LM that set no field here: those without meaning, which are accepted with a
// note, and those whose meaning is not available, which are refused with the reason. Flags that do
// set a field are aliases in its description.
#pragma once

#include <span>
#include <string_view>

namespace bev {

struct MegatronFlag {
  std::string_view flag;
  int values = 0;  // how many arguments follow it; -1: all up to the next flag
  bool accepted = true;
  std::string_view note{};
};

std::span<const MegatronFlag> megatron_flags();

}  // namespace bev
