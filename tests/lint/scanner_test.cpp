// The lexer and the scanner below the checks.
#include <gtest/gtest.h>

#include "lint/definitions.h"
#include "lint/source_text.h"

namespace bev::lint {
namespace {

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
