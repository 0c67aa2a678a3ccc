#include "config/parse/toml.h"

#include "unit/config/loading.h"

namespace bev {
namespace {

std::vector<Problem> toml_problems(std::string_view text) {
  Findings findings;
  parse_toml(text, "run.toml", findings);
  return findings.problems;
}

void expect_toml_problem(std::string_view text, const std::vector<std::string>& texts) {
  const std::vector<Problem> problems = toml_problems(text);
  ASSERT_EQ(problems.size(), 1u) << text << "\n" << report(problems);
  for (const std::string& wanted : texts)
    EXPECT_TRUE(mentions(problems[0], wanted)) << wanted << " is not in\n" << report(problems);
}

TEST(Toml, ValuesWithFileAndLine) {
  Findings findings;
  const auto assignments = parse_toml(
      "# a comment with [brackets] and a.b.c\n[model]\nlayers = 12\nnorm = \"rmsnorm\"\n\n"
      "[optim]\nlr = 3e-4\n[data]\nmock = true\n",
      "run.toml", findings);
  EXPECT_TRUE(findings.problems.empty());
  ASSERT_EQ(assignments.size(), 4u);
  std::map<std::string, std::string> origins;
  for (const Assignment& a : assignments) origins[a.field->path] = a.origin.text;
  EXPECT_EQ(origins["model.layers"], "run.toml:3");
  EXPECT_EQ(origins["model.norm"], "run.toml:4");
  EXPECT_EQ(origins["optim.lr"], "run.toml:7");
  EXPECT_EQ(origins["data.mock"], "run.toml:9");
}

TEST(Toml, NumbersInEitherNotation) {
  Findings findings;
  const auto assignments = parse_toml(
      "model.layers = 1e2\ntrain.samples = 300_000_000\noptim.lr = 1\nmodel.width = 0x10\n", "f",
      findings);
  EXPECT_TRUE(findings.problems.empty()) << report(findings.problems);
  Config config;
  for (const Assignment& a : assignments) set_value(config, a.field->path, a.value);
  EXPECT_EQ(config.model.layers, 100);
  EXPECT_EQ(config.train.samples, 300000000);
  EXPECT_EQ(config.optim.lr, 1.0);
  EXPECT_EQ(config.model.width, 16);
}

TEST(Toml, EarlierNamesOfFieldsAreNoted) {
  Findings findings;
  const auto assignments =
      parse_toml("[device]\ntune = false\n[parallel]\nbackend = \"mpi\"\n", "run.toml", findings);
  EXPECT_TRUE(findings.problems.empty());
  ASSERT_EQ(assignments.size(), 2u);
  EXPECT_EQ(assignments[0].field->path, "device.autotune");
  EXPECT_EQ(assignments[0].origin.text, "run.toml:2");
  EXPECT_EQ(findings.notes,
            std::vector<std::string>{"run.toml:2: device.tune is now device.autotune"});
  expect_toml_problem("[device]\nautotune = true\ntune = false\n",
                      {"device.autotune is given twice", "run.toml:3", "only device.autotune"});
}

TEST(Toml, UnknownNamesNameTheNearest) {
  expect_toml_problem("[model]\nlayrs = 2\n",
                      {"[model] has no key layrs", "run.toml:2", "layers?"});
  expect_toml_problem("[model]\nnum_layers = 2\n", {"num_layers", "did you mean layers?"});
  expect_toml_problem("[model]\nhidden-size = 2\n", {"did you mean width?"});
  expect_toml_problem("[modle]\nlayers = 2\n", {"no section modle", "run.toml:1", "[model]?"});
  expect_toml_problem("[somewhere]\nx = 2\n", {"no section somewhere", "[model], [train]"});
  expect_toml_problem("layers = 2\n", {"outside of a section", "model.layers"});
  expect_toml_problem("[train]\nwidth = 2\n", {"did you mean model.width?"});
  expect_toml_problem("[model]\n\"a key \\u0007 so strange\" = 2\n", {"\\u0007"});
}

TEST(Toml, WrongTypes) {
  expect_toml_problem("[model]\nlayers = \"12\"\n",
                      {"model.layers", "run.toml:2", "without quotes"});
  expect_toml_problem("[model]\nlayers = 1.5\n", {"1.5 is not a whole number"});
  expect_toml_problem("[model]\nlayers = 1e300\n", {"not a whole number"});
  expect_toml_problem("[model]\nlayers = true\n", {"an integer is wanted, not true or false"});
  expect_toml_problem("[model]\nnorm = 3\n", {"between quotes", "layernorm or rmsnorm"});
  expect_toml_problem("[model]\nnorm = \"rms\"\n", {"\"rms\" is not one", "layernorm or rmsnorm"});
  expect_toml_problem("[data]\nmock = 1\n", {"data.mock", "true or false is wanted"});
  expect_toml_problem("[optim]\nlr = nan\n", {"not a finite number"});
  expect_toml_problem("[optim]\nlr = -inf\n", {"not a finite number"});
  expect_toml_problem("[model]\nlayers = 0\n", {"0 is below the range", "1 to 100,000"});
  expect_toml_problem("[train]\noutput = \"a\\u0000b\"\n", {"NUL"});
}

TEST(Toml, ListsDatesAndDeeperTablesAreRefused) {
  expect_toml_problem("[model]\nlayers = [1, 2]\n", {"cannot be a list", "run.toml:2"});
  expect_toml_problem("[model]\nlayers = 2024-01-02\n", {"cannot be a date"});
  expect_toml_problem("[model]\nlayers = 10:00:00\n", {"cannot be a date or time"});
  expect_toml_problem("[model.layers]\nx = 1\n", {"model.layers cannot be a table"});
  expect_toml_problem("[[model]]\nlayers = 1\n", {"model is a section, not a list", "[model]"});
  expect_toml_problem("model = 3\n", {"model is a section, not a value"});
}

TEST(Toml, SyntaxErrorsAndDuplicates) {
  expect_toml_problem("[model]\nlayers 12\n", {"not valid TOML", "run.toml:2"});
  expect_toml_problem("[model]\nlayers = 1\nlayers = 2\n", {"run.toml:3", "layers"});
  expect_toml_problem("[model]\nlayers = 1\n[model]\nwidth = 2\n", {"run.toml:3"});
  expect_toml_problem("[model]\noutput = \"x\n", {"run.toml:2"});
  expect_toml_problem("\xFF\xFE", {"not valid TOML"});
}

TEST(Toml, SeveralProblemsInTheOrderOfTheFile) {
  const auto problems = toml_problems("[train]\nseeed = 1\n[model]\nwidth = -1\nlayers = [1]\n");
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_TRUE(mentions(problems[0], "run.toml:2"));
  EXPECT_TRUE(mentions(problems[1], "run.toml:4"));
  EXPECT_TRUE(mentions(problems[2], "run.toml:5"));
}

TEST(Toml, HostileFiles) {
  expect_toml_problem(std::string(kMaxTomlBytes + 1, '#'), {"too large", "1048577"});
  const auto repeat = [](std::string_view piece, size_t times) {
    std::string text;
    for (size_t i = 0; i < times; ++i) text += piece;
    return text;
  };
  expect_toml_problem("x = " + repeat("[", 100000), {"nested too deeply", "run.toml:1"});
  expect_toml_problem("x = " + repeat("{a=", 100000), {"nested too deeply"});
  expect_toml_problem("\n[" + repeat("a.", 100000) + "a]\n", {"nested too deeply", "run.toml:2"});
  expect_toml_problem(repeat("a.", 100000) + "a = 1\n", {"nested too deeply"});
  // Brackets and dots hidden behind strings are still seen, those within are not.
  expect_toml_problem("x = '''\n''''' \ny = " + repeat("[", 1000), {"nested too deeply"});
  expect_toml_problem("x = \"\\\"\"\n" + repeat("a.", 1000) + "a = 1\n", {"nested too deeply"});
  EXPECT_TRUE(toml_problems("[train]\noutput = \"" + repeat(".[{", 500) + "\"\n").empty());
  expect_toml_problem("[model]\n" + repeat("x", 500000) + " = 1\n", {"a key of 500000 characters"});
  // Many problems are all reported.
  std::string many = "[model]\n";
  for (int i = 0; i < 1000; ++i) many += "unheard_of_" + std::to_string(i) + " = 1\n";
  EXPECT_EQ(toml_problems(many).size(), 1000u);
}

TEST(Toml, FilesThatCannotBeRead) {
  expect_problem(Args{"/nowhere/run.toml"} + small_model(),
                 {"cannot be read", "/nowhere/run.toml"});
  expect_problem(Args{testing::TempDir()} + small_model(),
                 {"cannot be read", "not a regular file"});
  const TemporaryFile large(std::string(kMaxTomlBytes + 1, '\n'));
  expect_problem(Args{large.path()} + small_model(), {"cannot be read", "1048576"});
}

}  // namespace
}  // namespace bev
