// Notations of Megatron's that are not ours, and what its flags mean together.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace bev {

struct CommandLine;

// "(127,0)" or "127,0", the tokens seen before and after the own one, as model.window counts them:
// "128". A side of -1 has no end. A text that is not such a pair comes back as it is.
std::string window_of_megatron(std::string_view text);

// Megatron's flags on a command line with their first value.
using GivenFlags = std::map<std::string, std::string, std::less<>>;

// Drops assignments of flags that Megatron ignores beside, or without, other ones, and adds what a
// flag says besides its value; what the user may have meant otherwise gets a note.
void combine_megatron_flags(const GivenFlags& given, CommandLine& line);

}  // namespace bev
