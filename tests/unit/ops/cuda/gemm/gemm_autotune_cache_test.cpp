// The cache of tuned GEMMs on disk. Every test names the fault that makes it fail.
#include <gtest/gtest.h>

#include <fstream>

#include "ops/cuda/gemm/gemm_autotune.h"
#include "support/temporary_directory.h"

namespace bev::cuda {
namespace {

GemmKey kind_with(int64_t rows) {
  GemmKey kind{};
  kind[0] = rows;
  kind[22] = 128;
  return kind;
}

TunedGemm gemm_with(uint64_t word) {
  TunedGemm gemm{.fused = true, .seconds = 1e-4};
  gemm.algorithm = {word, 0xFFFFFFFFFFFFFFFFu, 3, 4, 5, 6, 7, 8};
  return gemm;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Fails when a word of an algorithm is stored with fewer than 64 bits, or `fused` is lost.
TEST(GemmAutotuneCache, RemembersFromRunToRun) {
  const test::TemporaryDirectory folder;
  GemmAutotuneCache first(folder.path(), "NVIDIA H200", 130100);
  EXPECT_EQ(first.find(kind_with(7)), nullptr);
  first.put(kind_with(7), gemm_with(0x8000000000000001u));
  EXPECT_EQ(first.save(), "");
  const GemmAutotuneCache second(folder.path(), "NVIDIA H200", 130100);
  const TunedGemm* known = second.find(kind_with(7));
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->algorithm, gemm_with(0x8000000000000001u).algorithm);
  EXPECT_TRUE(known->fused);
  EXPECT_EQ(second.find(kind_with(8)), nullptr);
}

// Fails when the entries of one GPU or library version are used for another.
TEST(GemmAutotuneCache, KeepsGpusAndVersionsApart) {
  const test::TemporaryDirectory folder;
  GemmAutotuneCache first(folder.path(), "NVIDIA H200", 130100);
  first.put(kind_with(7), gemm_with(1));
  EXPECT_EQ(first.save(), "");
  EXPECT_EQ(GemmAutotuneCache(folder.path(), "NVIDIA H100", 130100).find(kind_with(7)), nullptr);
  EXPECT_EQ(GemmAutotuneCache(folder.path(), "NVIDIA H200", 130200).find(kind_with(7)), nullptr);
}

// Fails when a process writes only its own entries.
TEST(GemmAutotuneCache, KeepsWhatOthersHaveWritten) {
  const test::TemporaryDirectory folder;
  GemmAutotuneCache first(folder.path(), "gpu", 1), second(folder.path(), "gpu", 1);
  first.put(kind_with(1), gemm_with(1));
  second.put(kind_with(2), gemm_with(2));
  EXPECT_EQ(first.save(), "");
  EXPECT_EQ(second.save(), "");
  const GemmAutotuneCache third(folder.path(), "gpu", 1);
  EXPECT_NE(third.find(kind_with(1)), nullptr);
  EXPECT_NE(third.find(kind_with(2)), nullptr);
}

// Fails when a damaged file ends the program, or a damaged algorithm reaches the library.
TEST(GemmAutotuneCache, DoesNotBelieveADamagedFile) {
  const test::TemporaryDirectory folder;
  GemmAutotuneCache first(folder.path(), "gpu", 1);
  first.put(kind_with(1), gemm_with(12345));
  EXPECT_EQ(first.save(), "");
  const std::string whole = text_of(first.file());
  std::string other = whole;
  other.replace(other.find("12345"), 5, "12346");
  const auto holds = [&](const std::string& text) {
    std::ofstream(first.file()) << text;
    return GemmAutotuneCache(folder.path(), "gpu", 1).find(kind_with(1)) != nullptr;
  };
  EXPECT_TRUE(holds(whole));
  EXPECT_FALSE(holds(other));
  EXPECT_FALSE(holds(whole.substr(0, whole.size() / 2)));
  EXPECT_FALSE(holds(""));
  EXPECT_FALSE(holds("[]"));
  const std::string head = whole.substr(0, whole.find("\"gemms\""));
  EXPECT_FALSE(holds(head + R"("gemms": [{}]})"));
  EXPECT_FALSE(holds(head + R"("gemms": {"kind": 3}})"));
  std::string foreign = whole;
  foreign.insert(foreign.find("\"format\": ") + 10, "9");
  EXPECT_FALSE(holds(foreign));
  EXPECT_TRUE(holds(whole));
}

// Fails when a folder that cannot be created ends the run, or is not reported.
TEST(GemmAutotuneCache, SaysWhyItCannotBeKept) {
  const test::TemporaryDirectory folder;
  std::ofstream(folder.path() / "file") << "x";
  GemmAutotuneCache cache(folder.path() / "file" / "inside", "gpu", 1);
  cache.put(kind_with(1), gemm_with(1));
  EXPECT_NE(cache.save(), "");
  GemmAutotuneCache none("", "gpu", 1);
  none.put(kind_with(1), gemm_with(1));
  EXPECT_EQ(none.save(), "");
  EXPECT_NE(none.find(kind_with(1)), nullptr);
}

}  // namespace
}  // namespace bev::cuda
