#include "config/stored_config.h"

#include "base/check.h"
#include "config/parse/toml.h"

namespace bev {

namespace {

Value value_of(const Field& field, const std::string& text, std::string_view source) {
  // A default may lie outside the range: nothing was given.
  if (text == toml_text(field, field.standard)) return field.standard;
  Findings findings;
  const std::vector<Assignment> found =
      parse_toml(format("[{}]\n{} = {}\n", field.section(), field.key(), text), source, findings);
  const std::string why =
      !findings.problems.empty() ? findings.problems.front().why : "it is more than one value";
  BEV_CHECK(findings.problems.empty() && found.size() == 1 && found.front().field == &field, Data,
            "{} holds a configuration with {} = {}: {}; legal is {}", source, field.path,
            toml_string(text.substr(0, 80)), why, legal_values(field));
  return found.front().value;
}

}  // namespace

StoredConfig stored_config(const Config& config) {
  StoredConfig stored;
  for (const Field& field : fields())
    stored[field.path] = toml_text(field, get_value(config, field.path));
  return stored;
}

Config config_from(const StoredConfig& stored, std::string_view source) {
  Config config;
  for (const Field& field : fields())
    if (const auto found = stored.find(field.path); found != stored.end())
      set_value(config, field.path, value_of(field, found->second, source));
  return config;
}

}  // namespace bev
