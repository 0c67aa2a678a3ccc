#include "config/parse/field.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "config/megatron/megatron_flags.h"
#include "config/parse/notation.h"
#include "config/parse/value.h"
#include "config/presets.h"
#include "config/rules/config_check.h"

namespace bev {
namespace {

TEST(Fields, EachIsDescribed) {
  for (const Field& field : fields()) {
    EXPECT_FALSE(field.about.help.empty()) << field.path;
    EXPECT_EQ(field.about.help.find('\n'), std::string_view::npos) << field.path;
    EXPECT_FALSE(field.section_title.empty()) << field.path;
    EXPECT_LT(field.about.min, field.about.max) << field.path;
    const bool number = field.type == FieldType::Integer || field.type == FieldType::Real;
    EXPECT_EQ(number, std::isfinite(field.about.min) && std::isfinite(field.about.max))
        << field.path << ": numbers have a range, nothing else has";
    if (field.type == FieldType::Integer) {
      EXPECT_LE(field.about.max, 9.2e18) << field.path;
    }
  }
}

TEST(Fields, NamesAndFlagsAreUnique) {
  std::set<std::string, std::less<>> names;
  for (const Field& field : fields()) {
    EXPECT_TRUE(names.insert("--" + field.path).second) << field.path;
    for (const Alias& alias : field.about.aliases) {
      EXPECT_EQ(alias.flag.substr(0, 2), "--");
      // A flag that sets several fields is an alias of each.
      if (alias.part > 1) continue;
      EXPECT_TRUE(names.insert(std::string(alias.flag)).second) << alias.flag;
    }
  }
  for (const FlagTopic& topic : megatron_topics())
    for (const MegatronFlag& flag : topic.flags)
      for (const std::string_view spelling : split_words(flag.flag))
        EXPECT_TRUE(names.insert(std::string(spelling)).second) << spelling;
}

TEST(Fields, AliasesMeanLegalValues) {
  for (const Field& field : fields()) {
    for (const Alias& alias : field.about.aliases) {
      for (const std::string_view word : {alias.sets, alias.only_from})
        EXPECT_TRUE(word.empty() || parse_value(field, word).value) << alias.flag;
      EXPECT_TRUE(alias.values.empty() || alias.values.size() == field.choices.size())
          << alias.flag;
    }
  }
}

TEST(Fields, ChoicesCoverTheirEnum) {
  for (const Field& field : fields()) {
    if (field.type != FieldType::Choice) continue;
    EXPECT_GE(field.choices.size(), 2u) << field.path;
    for (const std::string_view name : field.choices) EXPECT_FALSE(name.empty()) << field.path;
  }
}

TEST(Fields, SetAndGetEveryField) {
  Config config;
  for (const Field& field : fields()) {
    Value other;
    switch (field.type) {
      case FieldType::Integer: other = int64_t{77}; break;
      case FieldType::Real: other = 0.7; break;
      case FieldType::Boolean: other = !std::get<bool>(field.standard); break;
      case FieldType::Text: other = std::string("text"); break;
      case FieldType::Choice: other = Choice{field.choices.size() - 1}; break;
      case FieldType::List: other = TextList{"one", "two words"}; break;
    }
    set_value(config, field.path, other);
    EXPECT_EQ(get_value(config, field.path), other) << field.path;
  }
  EXPECT_EQ(config.model.layers, 77);
  EXPECT_EQ(config.loss.smoothing, Smoothing::Megatron);
}

// An earlier name leads to one field and is no field or flag itself.
TEST(Fields, EarlierNames) {
  for (const auto& [before, now] : std::map<std::string, std::string>{
           {"device.tune", "device.autotune"},
           {"parallel.engine", "parallel.backend"},
           {"parallel.silence_seconds", "parallel.heartbeat_warning_seconds"}}) {
    const Field* field = find_renamed_field(before);
    ASSERT_NE(field, nullptr) << before;
    EXPECT_EQ(field->path, now);
    EXPECT_EQ(renamed_note(*field), before + " is now " + now);
  }
  std::set<std::string> earlier;
  for (const Field& field : fields()) {
    const std::string path = former_path(field);
    if (path.empty()) continue;
    EXPECT_EQ(find_field(path), nullptr) << path;
    EXPECT_TRUE(earlier.insert(path).second) << path;
  }
  EXPECT_EQ(find_renamed_field(""), nullptr);
}

TEST(Fields, RulesAndPresetsNameExistingFields) {
  for (const std::string_view path : checked_fields()) EXPECT_NE(find_field(path), nullptr) << path;
  for (const Preset& preset : presets())
    for (const PresetSetting& setting : preset.settings)
      EXPECT_NE(find_field(setting.field), nullptr) << setting.field;
}

// Every field that the rules of Megatron's defaults decide on (design: decision 19).
TEST(Fields, DefaultsAreMegatrons) {
  const std::map<std::string, std::string> expected{
      {"model.vocab_multiple", "128"}, {"model.norm", "layernorm"},
      {"model.norm_eps", "1e-05"},     {"model.position", "learned"},
      {"model.rope_base", "10000"},    {"model.hidden_dropout", "0.1"},
      {"model.init_std", "0.02"},      {"model.attention_dropout", "0.1"},
      {"train.seed", "1234"},          {"train.log_interval", "100"},
      {"optim.kind", "adam"},          {"optim.min_lr", "0"},
      {"optim.decay", "linear"},       {"optim.wsd_decay", "exponential"},
      {"optim.weight_decay", "0.01"},  {"optim.beta1", "0.9"},
      {"optim.beta2", "0.999"},        {"optim.eps", "1e-08"},
      {"optim.momentum", "0.9"},       {"optim.clip", "1"},
      {"parallel.tensor", "1"},        {"optim.weight_decay_ramp", "constant"}};
  for (const auto& [path, text] : expected) {
    const Field* field = find_field(path);
    ASSERT_NE(field, nullptr) << path;
    EXPECT_EQ(plain_text(*field, field->standard), text) << path;
  }
}

}  // namespace
}  // namespace bev
