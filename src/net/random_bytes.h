// Random numbers that nobody can guess.
#pragma once

#include <cstddef>
#include <span>

namespace bev {

void fill_random(std::span<std::byte> bytes);

}  // namespace bev
