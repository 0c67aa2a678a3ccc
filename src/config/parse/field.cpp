#include "config/parse/field.h"

#include <optional>
#include <type_traits>

#include "base/check.h"

namespace bev {

namespace {

template <class T>
constexpr FieldType type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return FieldType::Boolean;
  else if constexpr (std::is_same_v<T, int64_t>)
    return FieldType::Integer;
  else if constexpr (std::is_same_v<T, double>)
    return FieldType::Real;
  else if constexpr (std::is_same_v<T, std::string>)
    return FieldType::Text;
  else if constexpr (std::is_same_v<T, TextList>)
    return FieldType::List;
  else {
    static_assert(std::is_enum_v<T>,
                  "fields are int64_t, double, bool, std::string, TextList or an enum");
    return FieldType::Choice;
  }
}

template <class T>
Value to_value(const T& field) {
  if constexpr (std::is_enum_v<T>)
    return Choice{static_cast<size_t>(field)};
  else
    return Value(field);
}

// The visitor that turns the description into data.
struct Describer {
  std::vector<Field>& all;
  std::string_view name{}, title{};

  template <class T>
  void operator()(std::string_view key, const T& field, const FieldInfo& about) {
    Field f{.path = format("{}.{}", name, key),
            .section_title = title,
            .type = type_of<T>(),
            .about = about,
            .choices = {},
            .standard = to_value(field)};
    if constexpr (std::is_enum_v<T>)
      f.choices.assign(EnumNames<T>::names.begin(), EnumNames<T>::names.end());
    all.push_back(std::move(f));
  }
  template <class S>
  void section(std::string_view section_name, const S& s, std::string_view section_title) {
    Describer inner{all, section_name, section_title};
    S::describe(s, inner);
  }
};

std::vector<Field> describe_all() {
  std::vector<Field> all;
  Describer describer{all};
  const Config defaults;
  Config::describe(defaults, describer);
  return all;
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all = describe_all();
  return all;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Field& field : fields())
    if (names.empty() || names.back() != field.section()) names.emplace_back(field.section());
  return names;
}

const Field* find_field(std::string_view path) {
  for (const Field& field : fields())
    if (field.path == path) return &field;
  return nullptr;
}

const Field* find_renamed_field(std::string_view path) {
  for (const Field& field : fields())
    if (!path.empty() && former_path(field) == path) return &field;
  return nullptr;
}

std::string former_path(const Field& field) {
  const std::string_view key = field.about.formerly;
  return key.empty() ? "" : format("{}.{}", field.section(), key);
}

std::string renamed_note(const Field& field, std::string_view prefix) {
  return format("{0}{1} is now {0}{2}", prefix, former_path(field), field.path);
}

Value get_value(const Config& config, std::string_view path) {
  std::optional<Value> found;
  walk(config, [&](const std::string& name, const auto& field, const FieldInfo&) {
    if (name == path) found = to_value(field);
  });
  BEV_CHECK(found.has_value(), Internal, "there is no field {}", path);
  return *found;
}

void set_value(Config& config, std::string_view path, const Value& value) {
  bool done = false;
  walk(config, [&]<class T>(const std::string& name, T& field, const FieldInfo&) {
    if (name != path) return;
    if constexpr (std::is_enum_v<T>) {
      if (const auto* choice = std::get_if<Choice>(&value)) {
        field = static_cast<T>(choice->index);
        done = true;
      }
    } else if (const auto* same = std::get_if<T>(&value)) {
      field = *same;
      done = true;
    }
  });
  BEV_CHECK(done, Internal, "field {} does not exist or has another type", path);
}

}  // namespace bev
