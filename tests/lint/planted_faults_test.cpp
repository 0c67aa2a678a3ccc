// A check that has never failed is not yet a check: each one gets a tiny tree with a fault planted
// in it, which it must find in the right line, and the same tree without the fault, which it must
// accept.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "lint/checks.h"
#include "lint/definitions.h"
#include "lint/mutant_list.h"
#include "lint/source_text.h"

namespace bev::lint {
namespace {

namespace fs = std::filesystem;

// Path from the root -> content.
using Tree = std::map<std::string, std::string>;

class TemporaryTree {
 public:
  explicit TemporaryTree(const Tree& files) {
    std::string name = (fs::temp_directory_path() / "bevatron-lint-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    root_ = name;
    for (const auto& [path, content] : files) {
      fs::create_directories((root_ / path).parent_path());
      std::ofstream(root_ / path, std::ios::binary) << content;
    }
  }
  ~TemporaryTree() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;

  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

// What the named check finds, as "path:line" in the order of the files.
std::vector<std::string> places(std::string_view name, const Tree& files) {
  const TemporaryTree tree(files);
  std::vector<std::string> found;
  for (const Check& check : all_checks()) {
    if (check.name != name) continue;
    const Report report = check.run(tree.root());
    EXPECT_GT(report.files, 0) << name;
    for (const Finding& finding : report.findings) {
      found.push_back(finding.path + ":" + std::to_string(finding.line));
    }
    return found;
  }
  ADD_FAILURE() << "no check is called " << name;
  return found;
}

using Places = std::vector<std::string>;

// A small table of layers; the one of the project is read from the same place.
const std::pair<const std::string, std::string> kLayers{
    "src/CMakeLists.txt",
    "bev_library(base LINK fmt::fmt)\n"
    "bev_library(config LINK bev::base)\n"
    "bev_library(device LINK bev::config)\n"
    "bev_library(ops LINK bev::device)\n"
    "bev_library(comm LINK bev::device)\n"
    "bev_library(data LINK bev::config)\n"
    "bev_library(model LINK bev::ops bev::data)\n"
    "bev_library(app LINK bev::model)\n"};

TEST(PlantedFault, LayersAcceptsEarlierFoldersAndItself) {
  EXPECT_EQ(places("layers", {kLayers,
                              {"src/main.cpp", "#include \"app/train.h\"\n"},
                              {"src/model/block.cpp",
                               "#include \"model/block.h\"\n"
                               "#include \"ops/norm.h\"\n"
                               "#include \"base/check.h\"\n"
                               "#include <vector>\n"
                               "// #include \"app/train.h\"\n"}}),
            Places{});
}

TEST(PlantedFault, LayersFindsAnUpwardInclude) {
  EXPECT_EQ(
      places("layers", {kLayers, {"src/base/file.h", "#pragma once\n#include \"ops/norm.h\"\n"}}),
      Places{"src/base/file.h:2"});
}

TEST(PlantedFault, LayersFindsAnIncludeThatNoLinkLeadsTo) {
  EXPECT_EQ(places("layers", {kLayers,
                              {"src/data/data_loader.cpp", "  #  include \"device/device.h\"\n"},
                              {"src/ops/cpu/norm.cpp", "#include \"comm/communicator.h\"\n"}}),
            (Places{"src/data/data_loader.cpp:1", "src/ops/cpu/norm.cpp:1"}));
}

TEST(PlantedFault, LayersFindsAFolderWithoutALineAndAPathThatIsNotFromSrc) {
  EXPECT_EQ(
      places("layers",
             {kLayers, {"src/extras/a.h", "\n"}, {"src/ops/norm.cpp", "#include \"norm.h\"\n"}}),
      (Places{"src/extras/a.h:0", "src/ops/norm.cpp:1"}));
}

TEST(PlantedFault, LayersFindsALinkToALaterLine) {
  EXPECT_EQ(places("layers", {{"src/CMakeLists.txt",
                               "bev_library(base LINK bev::ops)\n"
                               "bev_library(ops LINK bev::base)\n"},
                              {"src/base/a.h", "\n"}}),
            Places{"src/CMakeLists.txt:1"});
}

TEST(PlantedFault, ModelWordsAcceptsTensorRanksCommentsAndOtherFolders) {
  EXPECT_EQ(
      places("model_words", {{"src/model/norm.cpp",
                              "// Every rank of the Communicator.\n"
                              "/* rank\n   rank */ int dims = x.shape.rank();\n"
                              "bool full = x.shape.rank() == kMaxRank;\n"
                              "const char* text = \"rank\";\n"
                              "int frank = 0, ranking = 0;\n"},
                             {"src/comm/thread_communicator.cpp", "#if 1\nint rank;\n#endif\n"}}),
      Places{});
}

TEST(PlantedFault, ModelWordsFindsRankInAnyName) {
  EXPECT_EQ(places("model_words", {{"src/model/a.cpp",
                                    "int rank = 0;\n"
                                    "int rank_ = 0;\n"
                                    "int tensor_ranks = 0;\n"
                                    "int local = grid.rank(3);\n"
                                    "int mine = rank();\n"}}),
            (Places{"src/model/a.cpp:1", "src/model/a.cpp:2", "src/model/a.cpp:3",
                    "src/model/a.cpp:4", "src/model/a.cpp:5"}));
}

TEST(PlantedFault, ModelWordsFindsCommunicatorsAndConditionalCompilation) {
  EXPECT_EQ(places("model_words", {{"src/model/a.h",
                                    "class ThreadCommunicator;\n"
                                    "  #  ifdef BEV_CUDA\n"
                                    "#else\n"
                                    "#endif\n"
                                    "#if BEV_CUDA\n"
                                    "#include \"comm/communicator.h\"\n"}}),
            (Places{"src/model/a.h:1", "src/model/a.h:2", "src/model/a.h:3", "src/model/a.h:5",
                    "src/model/a.h:6"}));
}

TEST(PlantedFault, VendorIncludesAcceptsTheNamedFiles) {
  EXPECT_EQ(places("vendor_includes", {{"src/config/parse/toml.cpp", "#include <toml++/toml.h>\n"},
                                       {"src/base/format.h", "#include <fmt/format.h>\n"},
                                       {"src/base/file.cpp",
                                        "#include <sys/mman.h>\n"
                                        "#include <unistd.h>\n"
                                        "#include <vector>\n"},
                                       {"tests/unit/a_test.cpp", "#include <gtest/gtest.h>\n"}}),
            Places{});
}

TEST(PlantedFault, VendorIncludesFindsALibraryElsewhere) {
  EXPECT_EQ(
      places("vendor_includes", {{"src/app/train/train_verb.cpp", "#include <toml++/toml.h>\n"},
                                 {"src/plan/plan_report.h", "#include \"nlohmann/json.hpp\"\n"},
                                 {"src/train/step_runner.cpp", "#include <fmt/core.h>\n"},
                                 {"src/train/train_loop.cpp", "#include <gtest/gtest.h>\n"}}),
      (Places{"src/app/train/train_verb.cpp:1", "src/plan/plan_report.h:1",
              "src/train/step_runner.cpp:1", "src/train/train_loop.cpp:1"}));
}

TEST(PlantedFault, VendorIncludesFindsALibraryWithoutARow) {
  EXPECT_EQ(places("vendor_includes", {{"src/base/log.cpp", "\n#include <spdlog/spdlog.h>\n"}}),
            Places{"src/base/log.cpp:2"});
}

TEST(PlantedFault, ForbiddenNamesAcceptsOrdinaryOnes) {
  EXPECT_EQ(places("no_forbidden_names", {{"src/parallel/attention_core.h",
                                           "// The Impl of old.\n"
                                           "float v0, v1, v2; int implied = 0;\n"
                                           "const char* text = \"AdamV2\";\n"
                                           "auto raw = R\"(FooImpl \" BarImpl)\";\n"
                                           "int utility = 1'000; char c = '\"';\n"}}),
            Places{});
}

TEST(PlantedFault, ForbiddenNamesFindsFilesAndFolders) {
  EXPECT_EQ(places("no_forbidden_names", {{"src/base/string_utils.h", "\n"},
                                          {"src/common/a.h", "\n"},
                                          {"src/train/core.cpp", "\n"},
                                          {"tests/support/helpers.h", "\n"}}),
            (Places{"src/base/string_utils.h:0", "src/common/a.h:0", "src/train/core.cpp:0",
                    "tests/support/helpers.h:0"}));
}

TEST(PlantedFault, ForbiddenNamesFindsIdentifiers) {
  EXPECT_EQ(places("no_forbidden_names", {{"src/optim/adamw.cpp",
                                           "struct AdamV2 {};\n"
                                           "struct StoreImpl {};\n"
                                           "void step_v2();\n"
                                           "class DeviceManager;\n"
                                           "int impl_ = 0;\n"}}),
            (Places{"src/optim/adamw.cpp:1", "src/optim/adamw.cpp:2", "src/optim/adamw.cpp:3",
                    "src/optim/adamw.cpp:4", "src/optim/adamw.cpp:5"}));
}

TEST(PlantedFault, AsciiAcceptsTabsOutsideCpp) {
  EXPECT_EQ(places("ascii", {{"Makefile", "all:\n\tcmake --build .\n"},
                             {"src/a.cpp", "int a;\n\nint b;\n"},
                             {"docs/prose.md", "na\xC3\xAFve \n"}}),
            Places{});
}

TEST(PlantedFault, AsciiFindsEachKind) {
  EXPECT_EQ(places("ascii", {{"configs/a.toml", "name = \"\xC3\xA4\"\n"},
                             {"scripts/run.sh", "true \n"},
                             {"src/a.cpp", "int a;\n\tint b;\n"},
                             {"src/b.cpp", "int a;\r\nint b;\n"},
                             {"tests/c.h", "int a;\nint b;"}}),
            (Places{"src/a.cpp:2", "src/b.cpp:1", "tests/c.h:2", "scripts/run.sh:1",
                    "configs/a.toml:1"}));
}

const Tree kMutants{
    {"tests/mutants/run.sh", "targets=\"unit_test process_test ranks_test bevatron_golden\"\n"},
    {"tests/golden/one.json", "{}\n"},
    {"tests/unit/base/a_test.cpp",
     "TEST(Sum, OfTwo) {\n}\nTEST_P(Sums, OfMany) {\n}\n"
     "INSTANTIATE_TEST_SUITE_P(\n    Of, Sums, testing::Values(1));\n"},
    {"tests/processes/b_test.cpp", "TEST_F(Job, Ends) {\n}\n"},
    {"src/base/a.h",
     "namespace bev {\n"
     "struct Account {\n"
     "  explicit Account(int start) : sum_{start}, log_(\"a b\") {}\n"
     "  int limit = 7;\n"
     "  int get() const { return sum_; }\n"
     "};\n"
     "}  // namespace bev\n"},
    {"src/base/a.cpp",
     "#include \"base/a.h\"\n"
     "namespace bev {\n"
     "namespace {\n"
     "constexpr int kTable[] = {1, 2};\n"
     "}  // namespace\n"
     "// add(a, b) { return 5; }\n"
     "int add(int a, int b) {\n"
     "  if (a > b)  // return 6;\n"
     "    return a+\n"
     "        b;\n"
     "  b += 2; b += 2;\n"
     "  return b;\n"
     "}\n"
     "int add(long a) { return a - 1; }\n"
     "namespace cpu {\n"
     "int get() { return kTable[0]; }\n"
     "}  // namespace cpu\n"
     "}  // namespace bev\n"}};

Places places_of_faults(const std::string& list) {
  Tree tree = kMutants;
  tree["tests/mutants/list.txt"] = list;
  return places("mutants", tree);
}

const std::string kSumTest = " | unit_test | --gtest_filter=Sum.*\n";

TEST(PlantedFault, MutantsAcceptsWhatCanBePlanted) {
  EXPECT_EQ(places_of_faults("# a | comment\n"
                             "\n"
                             "spaces | add | return a + b ; | return a; | unit_test | "
                             "--gtest_filter=Sum.*\n"
                             "over a comment | bev::add | if(a > b) return | return | "
                             "unit_test | --gtest_filter=*OfMany/7:S*Two\n"
                             "overload | add | a - 1 | a | process_test | "
                             "--gtest_filter=Job.Ends\n"
                             "table | kTable | 1, 2 | | ranks_test | gloo 2\n"
                             "member | Account | limit = 7 | limit = 8 | bevatron-golden | "
                             "tests/golden\n"
                             "qualified | cpu::get | [0] | [1]" +
                             kSumTest +  //
                             "constructor | Account::Account | sum_{start} | sum_{}" + kSumTest),
            Places{});
}

TEST(PlantedFault, MutantsFindsWhatCannotBePlanted) {
  for (const std::string place : {"add | a = 3; | x",            // the statement is missing
                                  "add | b += 2; | x",           // the statement is there twice
                                  "add | return 6; | x",         // the statement is a comment
                                  "add | returna + b | x",       // white space between words counts
                                  "Account | \"a  b\" | x",      // white space in literals counts
                                  "add | | x",                   // no statement
                                  "add | a - 1 | a-1",           // the replacement changes nothing
                                  "add | a - 1 || b | x",        // too many fields
                                  "kTable | return kTable | x",  // the statement is in another
                                                                 // definition
                                  "subtract | a - 1 | x",        // the function is missing
                                  "dd | a - 1 | x",              // the function is missing
                                  "get | return | x",            // two functions have the name
                                  "base/a.cpp | a - 1 | x",      // a file is no function
                                  "Account | sum_(start) | x",   // the statement is missing
                                  "kTable::Account | limit | x"})  // the function is missing
    EXPECT_EQ(places_of_faults("\nname | " + place + kSumTest), Places{"tests/mutants/list.txt:2"})
        << place;
}

TEST(PlantedFault, MutantsFindsANameThatIsTaken) {
  EXPECT_EQ(places_of_faults("one | add | a - 1 | a" + kSumTest +  //
                             "one | add | a - 1 | 0" + kSumTest),
            Places{"tests/mutants/list.txt:2"});
}

TEST(PlantedFault, MutantsFindsATestThatIsNotThere) {
  for (const std::string test :
       {"units_test | --gtest_filter=Sum.*", "unit_test | --gtest_filter=Sum.OfThree",
        "unit_test | --gtest_filter=Sum.*:Product.*", "unit_test | --gtest_filter=Sums.OfMany",
        "unit_test | --gtest_filter=Job.*", "unit_test |", "unit_test", "unit_test | tests/golden",
        "bevatron-golden | tests/gold"}) {
    EXPECT_EQ(places_of_faults("\nname | add | a - 1 | a | " + test + "\n"),
              Places{"tests/mutants/list.txt:2"})
        << test;
  }
}

TEST(PlantFault, ChangesTheStatementAndNothingElse) {
  Tree files = kMutants;
  files["tests/mutants/list.txt"] =
      "sum | add | return a + b | return a" + kSumTest + "bad | add | a + c | a" + kSumTest;
  const TemporaryTree tree(files);
  EXPECT_EQ(plant_fault(tree.root(), "sum"), "src/base/a.cpp");
  std::string expected = files["src/base/a.cpp"];
  const std::string statement = "return a+\n        b";
  expected.replace(expected.find(statement), statement.size(), "return a");
  EXPECT_EQ(read_file(tree.root() / "src/base/a.cpp"), expected);
  EXPECT_EQ(read_file(tree.root() / "src/base/a.h"), files["src/base/a.h"]);
  EXPECT_THROW(plant_fault(tree.root(), "bad"), std::runtime_error);
  EXPECT_THROW(plant_fault(tree.root(), "none"), std::runtime_error);
}

std::vector<std::string> names_of(std::string_view text) {
  std::vector<std::string> names;
  for (const Definition& each : definitions(text)) names.push_back(each.name);
  return names;
}

TEST(Definitions, OfFunctions) {
  EXPECT_EQ(names_of("namespace a::b {\n"
                     "void f(int x = {3}) noexcept(true) { if (x) { g(); } }\n"
                     "void declared(int x);\n"
                     "template <class T, int N = (3 > 2)>\n"
                     "  requires(N > 1)\n"
                     "[[nodiscard]] std::function<void(T)> made(T t) { return {}; }\n"
                     "template <>\n"
                     "int Store<int>::size<2>() const& { return 0; }\n"
                     "__global__ void __launch_bounds__(256, 2) kernel(float* x) { x[0] = '{'; }\n"
                     "auto trailing() -> std::vector<int> { return {}; }\n"
                     "bool X::operator()(int) const { return true; }\n"
                     "bool operator==(const X&, const X&) { return true; }\n"
                     "X::operator bool() const { return true; }\n"
                     "}\n"
                     "extern \"C\" int plain() { return 0; }\n"
                     "extern \"C\" {\nint grouped() { return 0; }\n}\n"
                     "#define MACRO(x) { \\\n  {\n"
                     "int main() try { return 0; } catch (...) { return 1; }\n"),
            (std::vector<std::string>{"a::b::f", "a::b::made", "a::b::Store::size", "a::b::kernel",
                                      "a::b::trailing", "a::b::X::operator()", "a::b::operator==",
                                      "a::b::X::operator bool", "plain", "grouped", "main"}));
}

TEST(Definitions, OfClasses) {
  EXPECT_EQ(names_of("class Forward;\n"
                     "class alignas(16) A final : public Base<int>, private Other {\n"
                     " public:\n"
                     "  A() : Base<int>{1}, b_(2), c_{} {}\n"
                     "  ~A() override {}\n"
                     "  A(const A&) = delete;\n"
                     "  static constexpr int kLimit = 3;\n"
                     "  struct Inner { int x{1}; };\n"
                     "  enum class Kind : int { One = 1, Two };\n"
                     "  int member = 0, bits : 3;\n"
                     "};\n"
                     "struct A::Late { void run() {} };\n"
                     "A::A(int n) : A() { use(n); }\n"
                     "template <class T> struct Traits<T*> { };\n"),
            (std::vector<std::string>{"A", "A::A", "A::~A", "A::kLimit", "A::Inner", "A::Inner::x",
                                      "A::Kind", "A::member", "A::Late", "A::Late::run", "A::A",
                                      "Traits"}));
}

TEST(Definitions, OfFileScopeNames) {
  const std::vector<Definition> found = definitions(
      "namespace {\n"
      "namespace fs = std::filesystem;\n"
      "using Names = std::vector<int>;\n"
      "constexpr std::array<int, 2> kPair{1, 2};\n"
      "const char* const kTexts[2][3] = {{\"};\"}};\n"
      "const auto lambda = [](int x) { return x < 3; };\n"
      "struct { int x; } const kRows[] = {{1}};\n"
      "}\n"
      "int outside = 1;\n");
  std::vector<std::string> names;
  for (const Definition& each : found)
    if (each.in_unnamed_namespace && each.at_namespace_scope) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fs", "Names", "kPair", "kTexts", "lambda", "kRows"}));
  EXPECT_EQ(found.back().name, "outside");
  EXPECT_FALSE(found.back().in_unnamed_namespace);
}

TEST(Definitions, RangesIncludeHeadAndBody) {
  const std::string text = "int x;\n// a\nA::A(int n) : n_{n} { use(n); }\nint kY = 2;\n";
  std::vector<std::string> ranges;
  for (const Definition& each : definitions(text))
    ranges.push_back(text.substr(each.begin, each.end - each.begin));
  EXPECT_EQ(ranges, (std::vector<std::string>{"A::A(int n) : n_{n} { use(n); }", "int kY = 2;"}));
}

TEST(Definitions, AreDenotedByQualifiedNames) {
  EXPECT_TRUE(denotes("run", "bev::Stage::run"));
  EXPECT_TRUE(denotes("Stage::run", "bev::Stage::run"));
  EXPECT_TRUE(denotes("bev::Stage::run", "bev::Stage::run"));
  EXPECT_FALSE(denotes("un", "bev::Stage::run"));
  EXPECT_FALSE(denotes("age::run", "bev::Stage::run"));
  EXPECT_FALSE(denotes("Stage", "bev::Stage::Stage"));
  EXPECT_TRUE(denotes("Stage::Stage", "bev::Stage::Stage"));
}

TEST(PlantedFault, AnEmptyTreeIsNoSuccess) {
  const TemporaryTree tree(Tree{{"README.md", "text\n"}});
  for (const Check& check : all_checks()) {
    EXPECT_EQ(check.run(tree.root()).files, 0) << check.name;
  }
}

TEST(SourceText, WordsOfAName) {
  EXPECT_EQ(words_of("kMaxRank"), (std::vector<std::string>{"k", "max", "rank"}));
  EXPECT_EQ(words_of("rank_"), std::vector<std::string>{"rank"});
  EXPECT_EQ(words_of("MLPBlock"), (std::vector<std::string>{"mlp", "block"}));
  EXPECT_EQ(words_of("AdamV2"), (std::vector<std::string>{"adam", "v2"}));
}

TEST(SourceText, CommentsAndLiteralsAreBlank) {
  const SourceText text = source_text("a /* b\nc */ d \"e // f\" g // h\ni 'j' 1'000 k\n");
  EXPECT_EQ(text.code,
            (std::vector<std::string>{"a     ", "     d \"      \" g     ", "i ' ' 1'000 k"}));
}

}  // namespace
}  // namespace bev::lint
