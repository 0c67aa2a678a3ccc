// Small trainings that save and continue, on ranks of both kinds, as the program does them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "processes/job.h"

namespace bev::test {

enum class Ranks : uint8_t {
  Threads,  // four, of one process
  Launch,   // two processes of bevatron launch
};

std::string name_of(Ranks ranks);
std::string why_not(Ranks ranks);

// A folder of a run, and the runs that work there one after another.
class SavedRun {
 public:
  // `flags`: what the training has besides being small, with dropout.
  SavedRun(Ranks ranks, int64_t iterations, std::vector<std::string> flags = {});

  std::filesystem::path output() const { return folder_ / "run"; }
  std::filesystem::path checkpoints() const { return folder_ / "saved"; }
  std::filesystem::path place_of(int64_t iteration) const;
  int64_t iterations() const { return iterations_; }

  // Without a launcher around it. The later of repeated flags win.
  std::vector<std::string> command(const std::vector<std::string>& more = {}) const;
  // Continues from what is there, or begins. REQUIRES: nobody else works here.
  void start(Job& job, const std::vector<std::string>& more = {}) const;
  // The same, to its end: the exit code. What it printed goes to `err` where it is asked for.
  int run(const std::vector<std::string>& more = {}, std::string* err = nullptr) const;

  // The checkpoint of the highest iteration, 0: there is none. Every one that is visible must be
  // good; an error of the test where it is not.
  int64_t newest_good() const;
  // A line for each iteration in metrics.jsonl: number, losses, learning rate and gradient norm.
  std::vector<std::string> curve() const;

 private:
  Ranks ranks_;
  int64_t iterations_;
  std::vector<std::string> flags_;
  TemporaryDirectory folder_;
};

// A run of the same kind that nobody disturbed, made when it is first asked for.
const SavedRun& undisturbed(Ranks ranks, int64_t iterations, const std::vector<std::string>& flags);

// That both have ended alike: weights, optimizer, positions, the loss of every iteration once and
// in order, and the model.
void expect_same_end(const SavedRun& run, const SavedRun& undisturbed);

// That no half of anything is in a folder.
void expect_no_leftovers(const std::filesystem::path& folder);

// Names of the checkpoints in a folder, sorted.
std::vector<int64_t> checkpoints_in(const std::filesystem::path& folder);

// The number behind the last occurrence of `before`; 0: there is none.
int64_t last_number(const std::string& text, const std::string& before);

}  // namespace bev::test
