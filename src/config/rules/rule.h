// What a cross-field rule sees and how it is listed. Used by config_check.cpp and the *_rules.cpp
// only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/rules/config_check.h"

namespace bev {

struct RuleInput {
  const Config& config;
  Purpose purpose;
  const Origins& origins;

  // "model.width = 1000 (run.toml:3), model.heads = 12 (--num-attention-heads)".
  std::string where(std::initializer_list<std::string_view> paths) const;
};

struct Rule {
  std::vector<std::string_view> reads;
  std::optional<Problem> (*apply)(const RuleInput& facts);
  bool says_missing = false;  // left out when a file or preset could not be read
};

// Each list may rely on the ones before it only through `reads`: a rule must not crash on values
// that an earlier rule refused.
std::vector<Rule> model_rules();
std::vector<Rule> batch_rules();
std::vector<Rule> data_rules();
std::vector<Rule> optim_rules();
std::vector<Rule> device_rules();
std::vector<Rule> parallel_rules();
std::vector<Rule> checkpoint_rules();
std::vector<Rule> guard_rules();

// "11 or 12": the multiples of `step` on both sides of `value`, at least `step`.
std::string multiples_near(int64_t value, int64_t step);

// "8, 10, 20 or 25": the nearest divisors of `value` on both sides of `near`, two each.
std::string divisors_near(int64_t value, int64_t near);

}  // namespace bev
