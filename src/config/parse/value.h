// The value of one field as text on a command line and as TOML in a file. Errors give the reason
// and the accepted values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/parse/field.h"

namespace bev {

// A value, or the reason why the text is invalid.
struct Parsed {
  std::optional<Value> value;
  std::string why{}, legal{};
  bool later = false;  // the value is known, but not supported in this version
};

// The value as TOML: 12, 0.5, true, "text", ["a", "b"].
std::string toml_text(const Field& field, const Value& value);
// The value as on a command line or in a message: without quotes, list entries separated by blanks.
std::string plain_text(const Field& field, const Value& value);

// Parses the value of a flag; for a list field, one entry. With an alias, Megatron-LM's names of
// the choices are accepted too.
Parsed parse_value(const Field& field, std::string_view text, const Alias* alias = nullptr);

// Converts a TOML value (integer, real, boolean, string, list of strings) to the field's type.
Parsed convert_value(const Field& field, const Value& value);

// The accepted values: "an integer, 1 to 100,000", "a number, at least 0", "true, false, 1 or 0",
// "layernorm or rmsnorm", "any text in UTF-8".
std::string legal_values(const Field& field, const Alias* alias = nullptr);

}  // namespace bev
