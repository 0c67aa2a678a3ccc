// bevatron bench generate.
#pragma once

#include <span>
#include <string>

namespace bev::app {

int bench_generate(std::span<const std::string> args);

}  // namespace bev::app
