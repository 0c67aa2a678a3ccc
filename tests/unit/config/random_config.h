// A configuration with a random legal value in every field.
#pragma once

#include <random>
#include <string>

#include "config/parse/field.h"

namespace bev {

inline std::string random_text(std::mt19937_64& random) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(1 + random() % 127);
  return random() % 4 == 0 ? text + "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80" : text;
}

inline Value random_value(const Field& field, std::mt19937_64& random) {
  const double u = static_cast<double>(random() >> 11) * 0x1p-53;
  const double number = field.about.min + u * (field.about.max - field.about.min);
  switch (field.type) {
    case FieldType::Integer: return static_cast<int64_t>(number);
    case FieldType::Real: return number;
    case FieldType::Boolean: return u < 0.5;
    case FieldType::Text: return random_text(random);
    case FieldType::Choice: return Choice{random() % field.choices.size()};
    case FieldType::List: break;
  }
  TextList list(random() % 4);
  for (std::string& text : list) text = random_text(random);
  return list;
}

inline Config random_config(std::mt19937_64& random) {
  Config config;
  for (const Field& field : fields()) set_value(config, field.path, random_value(field, random));
  return config;
}

}  // namespace bev
