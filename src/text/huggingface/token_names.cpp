#include "text/huggingface/token_names.h"

#include "base/check.h"
#include "base/json.h"

namespace bev {

void TokenNames::add(std::string_view name, int64_t id, std::string_view source,
                     std::string_view path) {
  BEV_CHECK(id >= 0 && id < kLimit, Data, "{}: {}: the id of token {} is {}; ids are 0 to {}",
            source, path, in_quotes(name), id, kLimit - 1);
  const auto i = static_cast<size_t>(id);
  const auto [place, is_new] = ids_.emplace(name, static_cast<int32_t>(id));
  BEV_CHECK(is_new, Data, "{}: {}: the token {} is there twice, with ids {} and {}", source, path,
            in_quotes(name), place->second, id);
  if (i >= names_.size()) names_.resize(i + 1, nullptr);
  BEV_CHECK(names_[i] == nullptr, Data, "{}: {}: tokens {} and {} both have id {}", source, path,
            in_quotes(*names_[i]), in_quotes(name), id);
  names_[i] = &place->first;
}

std::optional<int32_t> TokenNames::find(std::string_view name) const {
  const auto known = ids_.find(name);
  if (known == ids_.end()) return std::nullopt;
  return known->second;
}

const std::string* TokenNames::name(int32_t id) const {
  if (id < 0 || id >= size()) return nullptr;
  return names_[static_cast<size_t>(id)];
}

}  // namespace bev
