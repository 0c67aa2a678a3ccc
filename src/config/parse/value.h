// The value of one field as text on a command line and as TOML in a file. Errors say why a text was
// refused and what would be accepted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/parse/field.h"

namespace bev {

// A value, or the reason why there is none.
struct Parsed {
  std::optional<Value> value;
  std::string why{}, legal{};
  bool later = false;  // it is known, but missing in this version
};

// As it stands in a TOML file: 12, 0.5, true, "text", ["a", "b"].
std::string toml_text(const Field& field, const Value& value);
// As it stands on a command line or in a sentence: without quotes, a list with blanks between.
std::string plain_text(const Field& field, const Value& value);

// Reads the text of a flag; for a list it is one entry. With an alias, Megatron's words for the
// choices count too.
Parsed parse_value(const Field& field, std::string_view text, const Alias* alias = nullptr);

// Converts a value of TOML's types (integer, real, boolean, text, list of texts) to the field's.
Parsed convert_value(const Field& field, const Value& value);

// "1 to 100000", "at least 0", "layernorm or rmsnorm", "true or false", "any text".
std::string legal_values(const Field& field, const Alias* alias = nullptr);

}  // namespace bev
