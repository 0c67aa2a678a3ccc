// The fields of Config as data: what the description says of each, and access by path. The rest of
// this folder works on these, so that the description is walked in one place.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"
#include "config/parse/problem.h"

namespace bev {

struct Choice {
  size_t index = 0;  // into the names of the enum
  bool operator==(const Choice&) const = default;
};

using Value = std::variant<int64_t, double, bool, std::string, Choice, TextList>;

enum class FieldType : uint8_t { Integer, Real, Boolean, Text, Choice, List };

struct Field {
  std::string path;                // "model.width"
  std::string_view section_title;  // what the section is about
  FieldType type{};
  FieldInfo about;
  std::vector<std::string_view> choices;  // of FieldType::Choice
  Value standard;                         // the default

  std::string_view section() const { return std::string_view(path).substr(0, path.find('.')); }
  std::string_view key() const { return std::string_view(path).substr(path.find('.') + 1); }
};

// All fields in the order of the description.
const std::vector<Field>& fields();
std::vector<std::string> section_names();

// Null when there is no such field.
const Field* find_field(std::string_view path);

// By an earlier path (FieldInfo::formerly). Null when no field had it.
const Field* find_renamed_field(std::string_view path);
// The earlier path of the field; empty when it has none.
std::string former_path(const Field& field);
// "device.tune is now device.autotune", with `prefix` before both names.
std::string renamed_note(const Field& field, std::string_view prefix = "");

// REQUIRES: the path exists; for set also that the value has the type of the field.
Value get_value(const Config& config, std::string_view path);
void set_value(Config& config, std::string_view path, const Value& value);

// Where the value of a field came from.

// In the order of precedence: a later kind wins over an earlier one.
enum class OriginKind : uint8_t { Default, Preset, File, Flag };

struct Origin {
  OriginKind kind = OriginKind::Default;
  std::string text = "default";  // "default", "preset gpt2-124m", "run.toml:12", "--hidden-size"
};

// By field path ("model.width"). A path that is absent has its default.
using Origins = std::map<std::string, Origin, std::less<>>;

// What the readers of files and command lines hand on: values for fields, and what went wrong.

struct Assignment {
  const Field* field = nullptr;
  Value value;
  Origin origin;
  const Alias* alias = nullptr;  // the Megatron flag it was given by, if any
};

struct Findings {
  std::vector<Problem> problems;
  // Fields that a refused value or a misspelt name probably meant to set: rules that read them
  // would only report the same mistake again.
  std::set<std::string, std::less<>> doubtful;
  bool incomplete = false;  // a file or preset could not be read: something missing means nothing
  std::vector<std::string> notes;  // of files, for the user, one line each
};

}  // namespace bev
