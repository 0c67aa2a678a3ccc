#include <gtest/gtest.h>

#include <bit>

#include "config/config_diff.h"
#include "support/expect_error.h"
#include "unit/config/random_config.h"

namespace bev {
namespace {

using test::expect_error;

void expect_same_bits(const Config& a, const Config& b) {
  for (const Field& field : fields()) {
    const Value left = get_value(a, field.path), right = get_value(b, field.path);
    EXPECT_EQ(left, right) << field.path;
    if (const auto* real = std::get_if<double>(&left)) {
      EXPECT_EQ(std::bit_cast<uint64_t>(*real), std::bit_cast<uint64_t>(std::get<double>(right)))
          << field.path;
    }
  }
}

TEST(StoredConfig, HasEveryField) {
  const StoredConfig stored = stored_config(Config{});
  EXPECT_EQ(stored.size(), fields().size());
  for (const Field& field : fields()) EXPECT_EQ(stored.count(field.path), 1u) << field.path;
  EXPECT_EQ(stored.at("optim.beta2"), "0.999");
  EXPECT_EQ(stored.at("optim.decay"), "\"linear\"");
}

TEST(StoredConfig, DefaultsReadBackThoughSomeMeanThatNothingWasGiven) {
  EXPECT_EQ(stored_config(Config{}).at("model.layers"), "0");
  expect_same_bits(config_from(stored_config(Config{}), "a checkpoint"), Config{});
}

TEST(StoredConfig, AnyLegalValueReadsBack) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 20; ++round) {
    const Config config = random_config(random);
    expect_same_bits(config_from(stored_config(config), "a checkpoint"), config);
  }
}

TEST(StoredConfig, TextsAndNumbersThatAreHardToWrite) {
  Config config;
  config.train.output = "a \"b\" 'c' \\ \n\r\t # [x] = \xC3\xA9 \x7F";
  config.data.path = {"0.3", "with, comma", "]", "\"", "", "\n[model]\nlayers = 7"};
  config.optim.lr = std::nextafter(0.1, 1.0);
  config.optim.eps = 5e-324;
  config.optim.clip = 1e30;
  config.optim.min_lr = -0.0;
  config.train.seed = 9'000'000'000'000'000'000;
  expect_same_bits(config_from(stored_config(config), "a checkpoint"), config);
}

TEST(StoredConfig, OtherVersionsHaveOtherFields) {
  StoredConfig stored = stored_config(Config{});
  stored["model.colour"] = "not even TOML";
  stored["nothing"] = "1";
  stored.erase("optim.beta2");
  stored["optim.beta1"] = "0.5";
  const Config config = config_from(stored, "a checkpoint");
  EXPECT_EQ(config.optim.beta1, 0.5);
  EXPECT_EQ(config.optim.beta2, 0.999);
}

TEST(StoredConfig, NonsenseNamesSourceAndField) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"model.layers", "", "step-10 holds a configuration with model.layers = \"\""},
      {"model.layers", "many", "model.layers = \"many\""},
      {"model.layers", "\"2\"", "written without quotes"},
      {"model.layers", "-1", "below the range"},
      {"model.layers", "2\nwidth = 64", "it is more than one value"},
      {"model.layers", "2\nlayers = 64", "model.layers"},
      {"model.layers", "2 # a comment\n[train]\nseed = 1", "it is more than one value"},
      {"model.layers", "[[[[[[[[[[1]]]]]]]]]]", "model.layers"},
      {"model.norm", "\"batchnorm\"", "not one of the choices"},
      {"optim.lr", "nan", "not a finite number"},
      {"data.path", "[1, 2]", "its entries are texts"},
      {"data.path", "[\"a\"", "data.path"},
      {"train.output", "\"\xFF\"", "train.output"},
  };
  for (const auto& [path, text, message] : cases) {
    StoredConfig stored = stored_config(Config{});
    stored[path] = text;
    expect_error(ErrorKind::Data, message, [&] { config_from(stored, "step-10"); });
  }
}

TEST(StoredConfig, AnyTextIsAValueOrRefused) {
  std::mt19937_64 random(22);
  constexpr std::string_view kAlphabet = "0123456789.e+-\"'\\[]{}=,#\n truefalsinf_x\x01\xC3";
  for (int round = 0; round < 300; ++round) {
    const Field& field = fields()[random() % fields().size()];
    std::string text;
    for (size_t i = random() % 10; i > 0; --i) text += kAlphabet[random() % kAlphabet.size()];
    try {
      const Config config = config_from({{field.path, text}}, "a checkpoint");
      // Nothing but this field was set.
      Config standard;
      set_value(standard, field.path, get_value(config, field.path));
      expect_same_bits(config, standard);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind, ErrorKind::Data) << error.what();
    }
  }
}

}  // namespace
}  // namespace bev
