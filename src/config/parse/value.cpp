#include "config/parse/value.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/format.h"
#include "config/parse/notation.h"

namespace bev {

namespace {

// 1e15 for a bound of an integer field is better read as 1,000,000,000,000,000.
std::string bound_text(const Field& field, double bound) {
  if (field.type != FieldType::Integer || std::abs(bound) > 9.2e18) return format("{}", bound);
  return with_commas(static_cast<int64_t>(bound));
}

std::string range_text(const Field& field) {
  const bool low = std::isfinite(field.about.min), high = std::isfinite(field.about.max);
  if (low && high)
    return format("{} to {}", bound_text(field, field.about.min),
                  bound_text(field, field.about.max));
  if (low) return format("at least {}", bound_text(field, field.about.min));
  if (high) return format("at most {}", bound_text(field, field.about.max));
  return {};
}

std::string noun(const Field& field) {
  switch (field.type) {
    case FieldType::Integer: return "an integer";
    case FieldType::Real: return "a number";
    case FieldType::Boolean: return "true or false";
    case FieldType::Text: return "text";
    case FieldType::Choice: return "one of the choices";
    case FieldType::List: return "a list of texts";
  }
  return {};
}

Parsed within_range(const Field& field, Value value, double number) {
  if (number >= field.about.min && number <= field.about.max) return {.value = std::move(value)};
  const char* side = number < field.about.min ? "below" : "above";
  return {.value = std::nullopt,
          .why = format("{} is {} the range of {}", plain_text(field, value), side, field.path),
          .legal = legal_values(field)};
}

Parsed refused(const Field& field, std::string why, const Alias* alias = nullptr) {
  return {.value = std::nullopt, .why = std::move(why), .legal = legal_values(field, alias)};
}

// Megatron's words for the choice.
std::vector<std::string_view> words_of(const Alias* alias, size_t choice) {
  if (alias == nullptr || choice >= alias->values.size()) return {};
  return split_words(alias->values[choice]);
}

bool contains(const std::vector<std::string_view>& words, std::string_view text) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

Parsed choose(const Field& field, std::string_view text, const Alias* alias) {
  for (size_t i = 0; i < field.choices.size(); ++i)
    if (contains(words_of(alias, i), text)) return {.value = Choice{i}};
  for (size_t i = 0; i < field.choices.size(); ++i)
    if (field.choices[i] == text) return {.value = Choice{i}};
  Parsed none = refused(field, format("{} is not one of the choices", toml_string(text)), alias);
  none.later = alias != nullptr && contains(split_words(alias->later), text);
  return none;
}

Parsed accept_list(const Field& field, const TextList& list) {
  if (std::all_of(list.begin(), list.end(), [](const std::string& s) { return is_plain_text(s); }))
    return {.value = list};
  return refused(field, "a text is not UTF-8 or holds a NUL character");
}

Parsed accept_text(const Field& field, std::string_view text) {
  if (is_plain_text(text)) return {.value = std::string(text)};
  return refused(field, "the text is not UTF-8 or holds a NUL character");
}

}  // namespace

std::string plain_text(const Field& field, const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) return format("{}", *real);
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<TextList>(&value)) return format("{}", fmt::join(*list, " "));
  return std::string(field.choices.at(std::get_if<Choice>(&value)->index));
}

std::string toml_text(const Field& field, const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  if (const auto* list = std::get_if<TextList>(&value)) {
    TextList quoted;
    for (const std::string& text : *list) quoted.push_back(toml_string(text));
    return format("[{}]", fmt::join(quoted, ", "));
  }
  const std::string text = plain_text(field, value);
  const bool quotes = field.type == FieldType::Text || field.type == FieldType::Choice;
  return quotes ? toml_string(text) : text;
}

Parsed parse_value(const Field& field, std::string_view text, const Alias* alias) {
  switch (field.type) {
    case FieldType::Integer:
      if (const auto value = parse_integer(text))
        return within_range(field, *value, static_cast<double>(*value));
      if (parse_real(text)) {
        return refused(field, format("{} is not a whole number of at most 64 bits", text));
      }
      break;
    case FieldType::Real:
      if (const auto value = parse_real(text)) return within_range(field, *value, *value);
      break;
    case FieldType::Boolean:
      if (const auto value = parse_boolean(text)) return {.value = *value};
      break;
    case FieldType::Text: return accept_text(field, text);
    case FieldType::Choice: return choose(field, text, alias);
    case FieldType::List: return accept_list(field, {std::string(text)});
  }
  return refused(field, format("{} is not {}", toml_string(text), noun(field)));
}

Parsed convert_value(const Field& field, const Value& value) {
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto* text = std::get_if<std::string>(&value);
  const auto* boolean = std::get_if<bool>(&value);
  const auto* list = std::get_if<TextList>(&value);
  switch (field.type) {
    case FieldType::Integer:
      if (integer != nullptr) return within_range(field, value, static_cast<double>(*integer));
      // TOML reads 1e6 as a real number; up to 2^53 nothing was lost.
      if (real != nullptr && std::trunc(*real) == *real && std::abs(*real) <= 0x1p53)
        return within_range(field, static_cast<int64_t>(*real), *real);
      if (real != nullptr) return refused(field, format("{} is not a whole number", *real));
      break;
    case FieldType::Real:
      if (real != nullptr && !std::isfinite(*real))
        return refused(field, format("{} is not a finite number", *real));
      if (real != nullptr) return within_range(field, value, *real);
      if (integer != nullptr) {
        const auto number = static_cast<double>(*integer);
        return within_range(field, number, number);
      }
      break;
    case FieldType::Boolean:
      if (boolean != nullptr) return {.value = value};
      break;
    case FieldType::Text:
      if (text != nullptr) return accept_text(field, *text);
      break;
    case FieldType::Choice:
      if (text != nullptr) return choose(field, *text, nullptr);
      break;
    case FieldType::List:
      if (text != nullptr) return accept_list(field, {*text});
      if (list != nullptr) return accept_list(field, *list);
      break;
  }
  if (list != nullptr) return refused(field, "a field has one value, not a list");
  if (text != nullptr)
    return refused(
        field, format("{} is text; {} is written without quotes", toml_string(*text), noun(field)));
  const char* given = boolean != nullptr ? "true or false" : "a number";
  return refused(field,
                 format("{} is wanted, not {}{}", noun(field), given,
                        field.type >= FieldType::Text ? "; text is written between quotes" : ""));
}

std::string legal_values(const Field& field, const Alias* alias) {
  switch (field.type) {
    case FieldType::Integer:
    case FieldType::Real: {
      const std::string range = range_text(field);
      return range.empty() ? noun(field) : format("{}, {}", noun(field), range);
    }
    case FieldType::Boolean: return "true, false, 1 or 0";
    case FieldType::Text: return "any text in UTF-8";
    case FieldType::List: return "one or more texts in UTF-8";
    case FieldType::Choice: break;
  }
  std::vector<std::string_view> words;
  for (size_t i = 0; i < field.choices.size(); ++i) {
    const auto theirs = words_of(alias, i);
    if (theirs.empty() && !contains(words, field.choices[i])) words.push_back(field.choices[i]);
    words.insert(words.end(), theirs.begin(), theirs.end());
  }
  return enumerate(words);
}

}  // namespace bev
