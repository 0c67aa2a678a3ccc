// bevatron bench comm.
#pragma once

#include <span>
#include <string>

namespace bev::app {

// As one of the ranks that a launcher started, or with ranks as threads of this process.
int bench_comm(std::span<const std::string> args);

// bevatron bench generate.

int bench_generate(std::span<const std::string> args);

}  // namespace bev::app
