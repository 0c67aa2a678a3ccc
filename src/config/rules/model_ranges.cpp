#include "config/rules/model_ranges.h"

#include <type_traits>

#include "base/check.h"

namespace bev {

namespace {

struct RangeCheck {
  const std::string& source;

  template <class T>
  void operator()(const std::string& name, const T& value, const About& about) const {
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
