// Cross-field rules: their input and how they are listed. Used by config_check.cpp and the
// *_rules.cpp only.
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
  bool reports_missing = false;  // reports a missing value: skipped if a file or preset was
                                 // unreadable
};

// check_config() runs all rules, except those that read a doubtful field (Findings). A rule must
// not crash on values that another rule rejects.
std::vector<Rule> model_rules();
std::vector<Rule> biencoder_rules();
std::vector<Rule> batch_rules();
std::vector<Rule> data_rules();
std::vector<Rule> optim_rules();
std::vector<Rule> device_rules();
std::vector<Rule> parallel_rules();
std::vector<Rule> checkpoint_rules();
std::vector<Rule> guard_rules();

// The fields that do not fit a family, with the values that do.
class Misfits {
 public:
  void require(bool fits, std::string_view field, std::string_view has) {
    if (fits) return;
    if (!text_.empty()) text_ += ", ";
    text_.append(field).append(" ").append(has);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// "11 or 12": the multiples of `step` on both sides of `value`, at least `step`.
std::string multiples_near(int64_t value, int64_t step);

// "8, 10, 20 or 25": the nearest divisors of `value` on both sides of `near`, two each.
std::string divisors_near(int64_t value, int64_t near);

}  // namespace bev
