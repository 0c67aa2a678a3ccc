// bevatron inspect samples: what a training will see.
#pragma once

#include <span>
#include <string>

namespace bev::app {

int inspect_samples(std::span<const std::string> args);

}  // namespace bev::app
