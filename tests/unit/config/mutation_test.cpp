// Mutated configurations and command lines: whatever they hold, the answer is a configuration or a
// report, never a crash, and what passes the check can be resolved and printed.
#include <random>

#include "config/parse/toml.h"
#include "config/resolve.h"
#include "unit/config/loading.h"

namespace bev {
namespace {

constexpr std::string_view kPieces[] = {"[",
                                        "]",
                                        "{",
                                        "}",
                                        "\"",
                                        "\"\"\"",
                                        "'",
                                        "'''",
                                        "=",
                                        ".",
                                        "#",
                                        "\n",
                                        "\\",
                                        ",",
                                        "_",
                                        "-",
                                        "--",
                                        "0",
                                        "1",
                                        "9",
                                        "1e6",
                                        "-1",
                                        "1e999",
                                        "nan",
                                        "true",
                                        "model",
                                        "layers",
                                        "width",
                                        "heads",
                                        "train",
                                        "[model]\n",
                                        "[[model]]",
                                        "layers = 3\n",
                                        "preset = \"gpt2-124m\"\n",
                                        "2024-01-01",
                                        "\xC3\xA9",
                                        "\xFF",
                                        "\r\n",
                                        "9223372036854775807",
                                        "--num-layers",
                                        "--swiglu",
                                        "--model.layers=",
                                        "\t"};

std::string mutate(std::string text, std::mt19937_64& random) {
  const int edits = 1 + static_cast<int>(random() % 6);
  for (int i = 0; i < edits; ++i) {
    const size_t at = text.empty() ? 0 : random() % (text.size() + 1);
    switch (random() % 4) {
      case 0: text.insert(at, kPieces[random() % std::size(kPieces)]); break;
      case 1: text.erase(at, random() % 8); break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      default:
        text.insert(at, text.substr(text.empty() ? 0 : random() % text.size(), random() % 20));
    }
  }
  return text;
}

void use(const Config& config) {
  const ModelShape s = resolve_model(config);
  EXPECT_GT(s.head_dim, 0);
  EXPECT_GT(s.ffn, 0);
  EXPECT_GT(resolve_batch(config).micros, 0);
  EXPECT_GE(resolve_iterations(config), 0);
  EXPECT_FALSE(print_config(config).empty());
}

void expect_complete(const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) {
    EXPECT_FALSE(problem.what.empty());
    EXPECT_FALSE(problem.where.empty()) << problem.what;
    EXPECT_FALSE(problem.legal.empty()) << problem.what;
  }
}

TEST(Mutation, Files) {
  std::mt19937_64 random(1);
  const std::string seed = print_config(load(small_training()).config);
  int passed = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = mutate(seed, random);
    Findings findings;
    const auto assignments = parse_toml(text, "f.toml", findings);
    Config config;
    for (const Assignment& a : assignments) set_value(config, a.field->path, a.value);
    const auto violations = check_config(config, Purpose::Train, {}, findings);
    expect_complete(findings.problems);
    expect_complete(violations);
    if (findings.problems.empty() && violations.empty()) {
      use(config);
      ++passed;
    }
  }
  EXPECT_GT(passed, 10);
  EXPECT_LT(passed, 4000);
}

TEST(Mutation, CommandLines) {
  std::mt19937_64 random(2);
  const Args seed = small_training() + Args{"--model.preset", "gpt2-124m", "--swiglu", "--bf16"};
  int passed = 0;
  for (int i = 0; i < 4000; ++i) {
    Args args = seed;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const size_t at = random() % args.size();
      switch (random() % 4) {
        case 0: args[at] = mutate(args[at], random); break;
        case 1: args.erase(args.begin() + static_cast<ptrdiff_t>(at)); break;
        case 2: std::swap(args[at], args[random() % args.size()]); break;
        default:
          args.insert(args.begin() + static_cast<ptrdiff_t>(at),
                      std::string(kPieces[random() % std::size(kPieces)]));
      }
    }
    Findings findings;
    const LoadedConfig loaded = load_unchecked(args, {}, Purpose::Train, findings);
    expect_complete(findings.problems);
    if (findings.problems.empty()) {
      use(loaded.config);
      ++passed;
    } else {
      EXPECT_FALSE(report(findings.problems).empty());
    }
  }
  EXPECT_GT(passed, 10);
}

}  // namespace
}  // namespace bev
