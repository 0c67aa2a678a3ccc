#include "config/rules/config_check.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"
#include "config/parse/value.h"
#include "config/rules/rule.h"

namespace bev {

namespace {

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (auto list : {model_rules, biencoder_rules, batch_rules, data_rules, optim_rules,
                    device_rules, parallel_rules, checkpoint_rules, guard_rules})
    for (Rule& rule : list()) all.push_back(std::move(rule));
  return all;
}

bool reads_doubtful(const Rule& rule, const Findings& findings) {
  return std::any_of(rule.reads.begin(), rule.reads.end(), [&](std::string_view path) {
    return findings.doubtful.find(path) != findings.doubtful.end();
  });
}

std::string joined(const std::vector<int64_t>& values) {
  std::string list;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) list += i + 1 == values.size() ? " or " : ", ";
    list += format("{}", values[i]);
  }
  return list;
}

}  // namespace

std::vector<Problem> check_config(const Config& config, Purpose purpose, const Origins& origins,
                                  const Findings& findings) {
  const RuleInput facts{config, purpose, origins};
  std::vector<Problem> problems;
  for (const Rule& rule : all_rules()) {
    if (reads_doubtful(rule, findings) || (rule.reports_missing && findings.incomplete)) continue;
    if (auto problem = rule.apply(facts)) problems.push_back(std::move(*problem));
  }
  return problems;
}

std::vector<std::string_view> checked_fields() {
  std::vector<std::string_view> paths;
  for (const Rule& rule : all_rules())
    paths.insert(paths.end(), rule.reads.begin(), rule.reads.end());
  return paths;
}

std::string RuleInput::where(std::initializer_list<std::string_view> paths) const {
  std::string text;
  for (const std::string_view path : paths) {
    const Field* field = find_field(path);
    BEV_CHECK(field != nullptr, Internal, "a rule names the field {}, which does not exist", path);
    const auto origin = origins.find(path);
    text += format("{}{} = {} ({})", text.empty() ? "" : ", ", path,
                   toml_text(*field, get_value(config, path)),
                   origin == origins.end() ? "default" : origin->second.text);
  }
  return text;
}

std::string multiples_near(int64_t value, int64_t step) {
  const int64_t below = value / step * step;
  if (below < step) return format("{}", step);
  return below == value ? format("{}", value) : format("{} or {}", below, below + step);
}

std::string divisors_near(int64_t value, int64_t near) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d * d <= value; ++d) {
    if (value % d != 0) continue;
    divisors.push_back(d);
    if (d * d != value) divisors.push_back(value / d);
  }
  std::sort(divisors.begin(), divisors.end());
  const auto above = std::upper_bound(divisors.begin(), divisors.end(), near);
  const auto first = above - std::min<ptrdiff_t>(2, above - divisors.begin());
  const auto last = above + std::min<ptrdiff_t>(2, divisors.end() - above);
  return joined({first, last});
}

namespace {

struct RangeCheck {
  const std::string& source;

  template <class T>
  void operator()(const std::string& name, const T& value, const FieldInfo& about) const {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      const auto number = static_cast<double>(value);
      BEV_CHECK(number >= about.min && number <= about.max, Data,
                "{}: model.{} would be {}, which is not from {} to {}", source, name, value,
                about.min, about.max);
    }
  }
};

}  // namespace

void check_model_ranges(const ModelConfig& model, const std::string& source) {
  walk(model, RangeCheck{source});
}

}  // namespace bev
