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

TEST(PlantedFault, ModelWordsAcceptsTensorRanksAndOtherFolders) {
  EXPECT_EQ(
      places("model_words", {{"src/model/norm.cpp",
                              "// Every member of the Communicator.\n"
                              "int dims = x.shape.rank();\n"
                              "bool full = x.shape.rank() == kMaxRank;\n"
                              "if (step.kind == kind || layout(1)) return;\n"
                              "int frank = 0, ranking = 0;\n"},
                             {"src/model/family/gpt.cpp", "// Each tensor rank.\n"},
                             {"src/comm/thread_communicator.cpp", "#if 1\nint rank;\n#endif\n"}}),
      Places{});
}

TEST(PlantedFault, ModelWordsFindsRankInAnyName) {
  EXPECT_EQ(
      places("model_words", {{"src/model/a.cpp",
                              "int rank = 0;\n"
                              "int rank_ = 0;\n"
                              "int tensor_ranks = 0;\n"
                              "int local = grid.rank(3);\n"
                              "int mine = rank();\n"}}),
      (Places{"src/model/a.cpp:1", "src/model/a.cpp:4", "src/model/a.cpp:5", "src/model/a.cpp:1",
              "src/model/a.cpp:2", "src/model/a.cpp:3", "src/model/a.cpp:4", "src/model/a.cpp:5"}));
}

TEST(PlantedFault, ModelWordsFindsTheDeviceTheLayoutAndRanksInComments) {
  EXPECT_EQ(
      places("model_words", {{"src/model/a.cpp",
                              "bool gpu = ex.device.kind() == other;\n"
                              "bool sharded = params->layout().zero > 0;\n"
                              "int stages = env.pipeline;\n"
                              "int64_t vocab;  // on this rank\n"
                              "int64_t kind = 0;\n"}}),
      (Places{"src/model/a.cpp:1", "src/model/a.cpp:2", "src/model/a.cpp:3", "src/model/a.cpp:4"}));
}

TEST(PlantedFault, ParameterNamesFindsNamesOutsideModelAndConvert) {
  const std::pair<const std::string, std::string> family{
      "src/model/family/gpt.cpp",
      "const char* table = \"embedding.tokens.weight\";\n"
      "block.name = \"layers.\" + number;\n"
      "spec.losses = {\"lm\"};\n"};
  const std::pair<const std::string, std::string> linear{"src/model/linear.cpp",
                                                         "name + \".weight\";\n"};
  EXPECT_EQ(places("parameter_names", {family,
                                       linear,
                                       {"src/convert/names.cpp", "\"embedding.tokens.weight\";\n"},
                                       {"src/optim/adamw.cpp",
                                        "// \"layers.3.norm1.weight\"\n"
                                        "bool decays = role != Role::Norm;\n"
                                        "f(\"optim.weight\", \"lm\", \"embedding.sum\");\n"}}),
            Places{});
  EXPECT_EQ(places("parameter_names", {family,
                                       linear,
                                       {"src/optim/adamw.cpp",
                                        "bool decays = !name.ends_with(\".weight\");\n"
                                        "find(\"embedding.tokens.weight\");\n"
                                        "find(\"layers.0.norm1.bias\");\n"}}),
            (Places{"src/optim/adamw.cpp:1", "src/optim/adamw.cpp:2", "src/optim/adamw.cpp:3"}));
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

TEST(PlantedFault, ModelWordsFindsTheConfigurationOutsideFamilies) {
  EXPECT_EQ(places("model_words", {{"src/model/a.h",
                                    "#include \"config/choices.h\"\n"
                                    "#include \"config/config.h\"\n"
                                    "void f(const Config& config);\n"
                                    "bool gpu(DeviceKind kind);  // not Config\n"},
                                   {"src/model/family/gpt.cpp",
                                    "#include \"config/config.h\"\nvoid f(const Config& c);\n"}}),
            (Places{"src/model/a.h:2", "src/model/a.h:3", "src/model/a.h:4"}));
}

TEST(PlantedFault, ModelWordsFindsInferenceOutsideFamilies) {
  EXPECT_EQ(places("model_words", {{"src/model/a.h",
                                    "// Skipped when inferring.\n"
                                    "class KvCache;\n"
                                    "bool weights_constant = false;\n"
                                    "int64_t layer;  // of the KV cache\n"
                                    "void Decode();\n"
                                    "int64_t in_ferns = 0;\n"},
                                   {"src/model/family/gpt.cpp", "// Decoders.\n"},
                                   {"src/infer/a.h", "// Inference.\n"}}),
            (Places{"src/model/a.h:1", "src/model/a.h:2", "src/model/a.h:3", "src/model/a.h:4",
                    "src/model/a.h:5"}));
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

Tree numbered_files(const std::string& folder, int count, const std::string& content = "\n") {
  Tree files;
  for (int i = 0; i < count; ++i) files[folder + "/file_" + std::to_string(i) + ".cpp"] = content;
  return files;
}

TEST(PlantedFault, FolderSizeFindsAFolderWithTooManyFiles) {
  Tree files = numbered_files("src/base", 40);
  files.merge(numbered_files("src/base/more", 40));
  EXPECT_EQ(places("folder_size", files), Places{});
  files["src/base/notes.md"] = "\n";
  files.merge(numbered_files("tests/unit", 41));
  EXPECT_EQ(places("folder_size", files), (Places{"src/base:0", "tests/unit:0"}));
}

TEST(PlantedFault, SmallFilesFindsTooMany) {
  std::string large;
  for (int i = 0; i < 60; ++i) large += "int a;\n";
  Tree files = numbered_files("src/base", 350);
  files.merge(numbered_files("src/model", 10, large));
  EXPECT_EQ(places("small_files", files), Places{});
  files["src/base/one_more.h"] = large.substr(0, large.size() - 7);
  EXPECT_EQ(places("small_files", files), Places{"src:0"});
}

TEST(PlantedFault, FileNamesAcceptsSourcesOfAHeaderAndOps) {
  EXPECT_EQ(places("file_names", {{"src/ops/norm.h", "\n"},
                                  {"src/ops/norm.cpp", "\n"},
                                  {"src/ops/reference/norm.cpp", "\n"},
                                  {"src/ops/cpu/norm.cpp", "\n"},
                                  {"src/ops/cuda/norm/norm.cu", "\n"},
                                  {"src/model/norm.h", "\n"},
                                  {"src/data/loader.h", "\n"},
                                  {"tests/unit/data/loader.cpp", "\n"}}),
            Places{});
}

TEST(PlantedFault, FileNamesFindsTwoFilesWithOneName) {
  EXPECT_EQ(places("file_names", {{"src/data/resume.h", "\n"}, {"src/train/resume.cpp", "\n"}}),
            Places{"src/train/resume:0"});
  EXPECT_EQ(places("file_names", {{"src/ops/norm.h", "\n"}, {"src/train/norm.cpp", "\n"}}),
            Places{"src/train/norm:0"});
  EXPECT_EQ(places("file_names", {{"src/ops/cpu/a/norm.h", "\n"}, {"src/ops/cpu/b/norm.h", "\n"}}),
            Places{"src/ops/cpu/b/norm:0"});
}

TEST(PlantedFault, TypeNamesAcceptsOneNamespaceMembersAndDeclarations) {
  EXPECT_EQ(places("type_names",
                   {{"src/base/a.h",
                     "namespace bev {\nclass Reader {};\ntemplate <class T>\nstruct Traits {};\n"
                     "template <>\nstruct Traits<int> {};\nstruct Vec {};\n}\n"},
                    {"src/base/b.h",
                     "namespace bev::app {\nclass Reader;\nstruct Other { class Reader {}; };\n"
                     "struct Vec {};\n}\n"},
                    {"src/base/c.cpp", "namespace bev::net {\nclass Reader {};\n}\n"}}),
            Places{});
}

TEST(PlantedFault, TypeNamesFindsOneNameInTwoNamespaces) {
  EXPECT_EQ(
      places("type_names",
             {{"src/base/a.h", "namespace bev {\nclass Reader {};\nenum class Kind { A };\n}\n"},
              {"src/base/b.cuh",
               "namespace bev::app {\nstruct Reader {};\n\nenum class Kind { A };\n}\n"}}),
      (Places{"src/base/b.cuh:2", "src/base/b.cuh:4"}));
}

TEST(PlantedFault, IncludeOrderAcceptsTheOrderOfClangFormat) {
  EXPECT_EQ(places("include_order", {{"src/base/file.cpp",
                                      "#include \"base/file.h\"\n\n"
                                      "#include <fcntl.h>\n#include <unistd.h>\n\n"
                                      "#include <algorithm>\n#include <vector>\n\n"
                                      "#include \"base/error.h\"\n#include \"base/format.h\"\n"
                                      "#ifdef X\n#include <vector>\n#endif\n"},
                                     {"src/base/file.h", "#include <string>\n"},
                                     {"tests/unit/base/file_test.cpp",
                                      "#include \"base/file.h\"\n\n#include <gtest/gtest.h>\n"}}),
            Places{});
}

TEST(PlantedFault, IncludeOrderFindsALateOwnHeaderAndAWrongOrder) {
  EXPECT_EQ(
      places("include_order",
             {{"src/base/a.cpp", "#include <vector>\n\n#include \"base/a.h\"\n"},
              {"src/base/b.cpp", "#include \"base/a.h\"\n#include <vector>\n"},
              {"src/base/c.cpp", "#include <vector>\n#include <fcntl.h>\n"},
              {"src/base/d.cpp", "#include \"base/b.h\"\n#include \"base/a.h\"\n"}}),
      (Places{"src/base/a.cpp:3", "src/base/b.cpp:2", "src/base/c.cpp:2", "src/base/d.cpp:2"}));
}

TEST(PlantedFault, PrivateTermsAcceptsOtherWordsCommentsAndTests) {
  EXPECT_EQ(places("private_terms", {{"src/base/a.cpp",
                                      "// A lease.\n#include \"base/lease.h\"\n"
                                      "int release = 0, found = 0, file_found = 0, narrow = 0;\n"},
                                     {"tests/a.cpp", "int lease;\n"}}),
            Places{});
}

TEST(PlantedFault, PrivateTermsFindsFilesAndNames) {
  EXPECT_EQ(places("private_terms",
                   {{"src/base/found_file.h", "\n"},
                    {"src/comm/a.cpp", "class PhantomCommunicator;\nint few_row_product_;\n"},
                    {"src/time_mark/a.h", "void kBeginLease();\n"}}),
            (Places{"src/base/found_file.h:0", "src/comm/a.cpp:1", "src/comm/a.cpp:2",
                    "src/time_mark/a.h:0", "src/time_mark/a.h:1"}));
}

TEST(PlantedFault, UnityNamesAcceptsAliasesOverloadsAndOtherLibraries) {
  const std::string names = "namespace bev {\nnamespace {\nint limit() { return 1; }\n}\n}\n";
  EXPECT_EQ(places("unity_names",
                   {{"src/base/a.cpp",
                     names + "namespace {\nnamespace fs = std::filesystem;\nvoid f(int a) {}\n}\n"},
                    {"src/base/b.cpp",
                     "namespace {\nnamespace fs =\n    std::filesystem;\n"
                     "void f(const char* a) {}\nstruct S { int limit() { return 1; } };\n"
                     "}\nvoid Class::limit() { struct Local {}; }\n"},
                    {"src/base/kernels_avx2.cpp", names},
                    {"src/data/a.cpp", names},
                    {"tests/unit/base/a_test.cpp", names},
                    {"tests/unit/data/a_test.cpp", names},
                    {"tests/fuzz/a.cpp", names},
                    {"tests/fuzz/b.cpp", names},
                    {"src/base/c.cpp",
                     "namespace bev::cpu {\nnamespace {\nint limit() { return 1; }\n}\n}\n"}}),
            Places{});
}

TEST(PlantedFault, UnityNamesFindsOneNameInTwoSources) {
  EXPECT_EQ(places("unity_names", {{"src/base/a.cpp",
                                    "namespace {\nusing Row = int;\nconstexpr int kLimit = 1;\n"
                                    "struct Reader {};\nvoid f(int a, B b) {}\n}\n"
                                    "static int shared() { return 1; }\n"},
                                   {"src/base/more/b.cpp",
                                    "namespace {\nusing Row = long;\nconstexpr int kLimit{1};\n"
                                    "class Reader {};\nint f(int x, B y = {}) { return 1; }\n}\n"
                                    "static int shared() { return 1; }\n"}}),
            (Places{"src/base/more/b.cpp:2", "src/base/more/b.cpp:3", "src/base/more/b.cpp:4",
                    "src/base/more/b.cpp:5", "src/base/more/b.cpp:7"}));
}

TEST(PlantedFault, OneNameInTwoTestsOfAFolder) {
  const std::string name = "namespace {\nconstexpr int kLimit = 1;\n}\n";
  EXPECT_EQ(places("unity_names", {{"tests/unit/base/a_test.cpp", name},
                                   {"tests/unit/base/more/b_test.cpp", name},
                                   {"tests/processes/a_test.cpp", name},
                                   {"tests/processes/b_test.cpp", name}}),
            (Places{"tests/processes/b_test.cpp:2", "tests/unit/base/more/b_test.cpp:2"}));
}

TEST(PlantedFault, AnEmptyTreeIsNoSuccess) {
  const TemporaryTree tree(Tree{{"README.md", "text\n"}});
  for (const Check& check : all_checks()) {
    EXPECT_EQ(check.run(tree.root()).files, 0) << check.name;
  }
}

}  // namespace
}  // namespace bev::lint
