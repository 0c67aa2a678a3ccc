#include "coordination/key_value_table.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"

namespace bev {

namespace {

template <class Condition>
std::vector<SharedKeys::Wait> take_if(std::vector<SharedKeys::Wait>& waits, Condition condition) {
  const auto first = std::stable_partition(
      waits.begin(), waits.end(), [&](const SharedKeys::Wait& wait) { return !condition(wait); });
  std::vector<SharedKeys::Wait> taken(std::make_move_iterator(first),
                                      std::make_move_iterator(waits.end()));
  waits.erase(first, waits.end());
  return taken;
}

}  // namespace

std::string SharedKeys::put(const std::string& key, std::string value) {
  if (const std::string* old = find(key))
    return *old == value ? "" : format("key '{}' already has another value", key);
  if (key.size() + value.size() > bytes_most_ - bytes_)
    return format("key '{}' with {} bytes is too much: all keys together may have {}", key,
                  value.size(), bytes_most_);
  bytes_ += key.size() + value.size();
  values_.emplace(key, std::move(value));
  return "";
}

const std::string* SharedKeys::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<SharedKeys::Wait> SharedKeys::take_waits(const std::string& key) {
  return take_if(waits_, [&](const Wait& wait) { return wait.key == key; });
}

std::vector<SharedKeys::Wait> SharedKeys::take_waits_since(Time before) {
  return take_if(waits_, [&](const Wait& wait) { return wait.since <= before; });
}

}  // namespace bev
