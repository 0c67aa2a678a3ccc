#include "processes/saved_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/checkpoint_folder.h"
#include "support/same_checkpoint.h"

namespace bev::test {

namespace fs = std::filesystem;

namespace {

constexpr int kThreads = 4, kProcesses = 2;
// For a whole run on a machine that does much else.
constexpr double kRunPatience = 300;

}  // namespace

std::string name_of(Ranks ranks) { return ranks == Ranks::Threads ? "threads" : "launch"; }

std::string why_not(Ranks ranks) { return ranks == Ranks::Threads ? "" : why_not(Start::Launch); }

SavedRun::SavedRun(Ranks ranks, int64_t iterations, std::vector<std::string> flags)
    : ranks_(ranks), iterations_(iterations), flags_(std::move(flags)) {}

fs::path SavedRun::place_of(int64_t iteration) const {
  return CheckpointFolder(checkpoints()).place_of(iteration);
}

std::vector<std::string> SavedRun::command(const std::vector<std::string>& more) const {
  std::vector<std::string> all{BEV_PROGRAM};
  if (ranks_ == Ranks::Launch)
    all = all + std::vector<std::string>{"launch", "--nproc-per-node", std::to_string(kProcesses)};
  all.push_back("train");
  if (ranks_ == Ranks::Threads)
    all = all + std::vector<std::string>{"--threads", std::to_string(kThreads)};
  const std::string saved = checkpoints().string();
  return all + small_training(iterations_) +
         std::vector<std::string>{"--hidden-dropout",
                                  "0.1",
                                  "--attention-dropout",
                                  "0.1",
                                  "--train.output",
                                  output().string(),
                                  "--save",
                                  saved,
                                  "--load",
                                  saved} +
         flags_ + more;
}

void SavedRun::start(Job& job, const std::vector<std::string>& more) const {
  job.start(command(more), {});
}

int SavedRun::run(const std::vector<std::string>& more, std::string* err) const {
  Job job(kProcesses);
  start(job, more);
  const bool has_ended = job.await_end(kRunPatience).has_value();
  EXPECT_TRUE(has_ended) << job.err();
  if (err != nullptr) *err = job.err();
  return has_ended ? *job.children().front().code : -1;
}

int64_t SavedRun::newest_good() const {
  int64_t newest = 0;
  for (const CheckpointPlace& place : find_checkpoints(checkpoints())) {
    try {
      CheckpointReader(place.path).verify();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    newest = std::max(newest, place.iteration);
  }
  return newest;
}

std::vector<std::string> SavedRun::curve() const {
  std::vector<std::string> all;
  std::ifstream file(output() / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line, nullptr, false);
    EXPECT_TRUE(json.is_object()) << line;
    if (!json.is_object() || json.value("event", "") != "iteration") continue;
    std::string text = json.at("iteration").dump();
    for (const auto& [key, value] : json.items())
      if (key == "learning_rate" || key == "grad_norm" || key.ends_with("loss"))
        text += " " + key + " " + value.dump();
    all.push_back(std::move(text));
  }
  return all;
}

const SavedRun& undisturbed(Ranks ranks, int64_t iterations,
                            const std::vector<std::string>& flags) {
  std::ostringstream name;
  name << name_of(ranks) << iterations;
  for (const std::string& flag : flags) name << ' ' << flag;
  static std::map<std::string, std::unique_ptr<SavedRun>> all;
  std::unique_ptr<SavedRun>& run = all[name.str()];
  if (run) return *run;
  run = std::make_unique<SavedRun>(ranks, iterations, flags);
  std::string err;
  // When it saves changes no number.
  EXPECT_EQ(run->run({"--save-interval", "0"}, &err), 0) << err;
  return *run;
}

void expect_same_end(const SavedRun& run, const SavedRun& undisturbed) {
  const int64_t last = undisturbed.iterations();
  ASSERT_EQ(run.newest_good(), last);
  const CheckpointReader a(undisturbed.place_of(last)), b(run.place_of(last));
  EXPECT_TRUE(same_bits(a, b));
  EXPECT_TRUE(same_position(a.manifest(), b.manifest()));
  EXPECT_EQ(a.manifest().valid_loss, b.manifest().valid_loss);
  EXPECT_EQ(undisturbed.curve().size(), static_cast<size_t>(last));
  EXPECT_EQ(undisturbed.curve(), run.curve());
  // Absent if the model fits no format of Hugging Face.
  const auto model = [](const SavedRun& of) {
    const fs::path file = of.output() / "model" / "model.safetensors";
    return fs::exists(file) ? std::optional(read_text(file)) : std::nullopt;
  };
  EXPECT_TRUE(model(undisturbed) == model(run));
}

void expect_no_leftovers(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.starts_with('.') || name.find(".partial.") != std::string::npos)
        << name << " is left in " << folder;
  }
}

std::vector<int64_t> checkpoints_in(const fs::path& folder) {
  std::vector<int64_t> found;
  for (const CheckpointPlace& place : CheckpointFolder(folder).list())
    found.push_back(place.iteration);
  return found;
}

int64_t last_number(const std::string& text, const std::string& before) {
  const size_t at = text.rfind(before);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + before.size());
}

}  // namespace bev::test
