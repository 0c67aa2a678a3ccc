// The parts of bevatron tokenizer, one file each.
#pragma once

#include <span>
#include <string>

namespace bev::app {

int tokenizer_train(std::span<const std::string> args);
int tokenizer_info(std::span<const std::string> args);
int tokenizer_eval(std::span<const std::string> args);

}  // namespace bev::app
