// What the tests of the configuration share: loading from literal arguments and files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/parse/load.h"

namespace bev {

using Args = std::vector<std::string>;

inline Args operator+(Args a, const Args& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The least that every verb needs, on flags.
inline Args small_model() {
  return {"--num-layers", "2",    "--hidden-size", "64",  "--num-attention-heads", "4",
          "--vocab-size", "1000", "--seq-length",  "128", "--micro-batch-size",    "2"};
}

// The least that training needs.
inline Args small_training() {
  return small_model() + Args{"--train-iters", "100", "--lr", "1e-3", "--mock-data"};
}

inline std::vector<Problem> problems_of(const Args& args, Purpose purpose = Purpose::Plan,
                                        std::span<const VerbFlag> own = {}) {
  Findings findings;
  load_unchecked(args, own, purpose, findings);
  return findings.problems;
}

// Whether any part of the problem holds the text.
inline bool mentions(const Problem& p, std::string_view text) {
  return (p.what + "\n" + p.where + "\n" + p.why + "\n" + p.legal).find(text) != std::string::npos;
}

// Exactly one problem, which holds all the texts.
inline void expect_no_problem(const Args& args) { EXPECT_EQ(problems_of(args).size(), 0u); }

inline void expect_problem(const Args& args, const std::vector<std::string>& texts,
                           Purpose purpose = Purpose::Plan) {
  const std::vector<Problem> problems = problems_of(args, purpose);
  ASSERT_EQ(problems.size(), 1u) << (problems.empty() ? "none" : report(problems));
  for (const std::string& text : texts)
    EXPECT_TRUE(mentions(problems[0], text)) << text << " is not in\n" << report(problems);
}

// A file that lives as long as the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content, const std::string& name = "run.toml") {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("bevatron-" + std::string(test->test_suite_name()) + "-" + test->name());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / name;
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path folder_, path_;
};

}  // namespace bev
