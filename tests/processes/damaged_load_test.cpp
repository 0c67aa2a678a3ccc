// A damaged checkpoint is named and left out: the run goes on from the one before, on all ranks,
// or ends without having touched anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>

#include "base/file.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/manifest.h"
#include "processes/saved_run.h"
#include "support/same_checkpoint.h"

namespace bev::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLoadedIterations = 3;

// Pieces of each tensor on several ranks.
const std::vector<std::string>& flags() {
  static const std::vector<std::string> all{"--use-distributed-optimizer", "--eval-iters", "0"};
  return all;
}

// With checkpoints of all iterations but the last, to be damaged.
class Prepared {
 public:
  explicit Prepared(Ranks ranks) : run_(ranks, kLoadedIterations, flags()) {
    const SavedRun& whole = original(ranks);
    fs::copy(whole.checkpoints(), run_.checkpoints(), fs::copy_options::recursive);
    fs::remove_all(run_.place_of(kLoadedIterations));
  }

  const SavedRun& run() const { return run_; }
  fs::path newest() const { return run_.place_of(kLoadedIterations - 1); }
  fs::path older() const { return run_.place_of(kLoadedIterations - 2); }

  // Nobody disturbed it.
  static const SavedRun& original(Ranks ranks) {
    static std::map<Ranks, std::unique_ptr<SavedRun>> all;
    std::unique_ptr<SavedRun>& run = all[ranks];
    if (run) return *run;
    run = std::make_unique<SavedRun>(ranks, kLoadedIterations, flags());
    EXPECT_EQ(run->run({"--save-interval", "1"}), 0);
    return *run;
  }

 private:
  SavedRun run_;
};

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// `part` of its length from its beginning.
void flip_a_byte(const fs::path& path, double part) {
  std::string text = read_text(path);
  text[std::min(text.size() - 1, static_cast<size_t>(part * static_cast<double>(text.size())))] ^=
      0x10;
  write_text(path, text);
}

// REQUIRES: `from` is in the text.
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_EQ(count(text, from), 1u) << from;
  return text.replace(text.find(from), from.size(), to);
}

void cut_off(const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); }

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Every file below a folder, and what is in it.
std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) all[entry.path().string()] = read_text(entry.path());
  return all;
}

// That the run says what is wrong with the newest, and goes on from the one before to the same end.
void expect_older_is_used(const Prepared& prepared, Ranks ranks, const std::string& named,
                          const std::string& words) {
  SCOPED_TRACE(named + ": " + words);
  std::string err;
  EXPECT_EQ(prepared.run().run({}, &err), 0) << err;
  const std::string alert = "bevatron: alert: ";
  EXPECT_NE(err.find(alert), std::string::npos) << err;
  EXPECT_NE(err.find("the checkpoint of iteration 2 cannot be used: "), std::string::npos) << err;
  EXPECT_NE(err.find(named), std::string::npos) << err;
  EXPECT_NE(err.find(words), std::string::npos) << err;
  EXPECT_NE(err.find("resume    " + prepared.older().string()), std::string::npos) << err;
  EXPECT_NE(err.find("set-aside"), std::string::npos) << err;
  EXPECT_TRUE(fs::exists(prepared.run().checkpoints() / "set-aside" / "iter_0000002"));
  EXPECT_EQ(prepared.run().newest_good(), kLoadedIterations);
  EXPECT_TRUE(same_bits(CheckpointReader(Prepared::original(ranks).place_of(kLoadedIterations)),
                        CheckpointReader(prepared.run().place_of(kLoadedIterations))));
}

struct Case {
  Ranks ranks;
  bool every_file;  // else one of each kind
};

class DamagedLoad : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(ranks()); !why.empty()) GTEST_SKIP() << why;
  }

  static Ranks ranks() { return GetParam().ranks; }

  // Of a checkpoint, to be damaged.
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const fs::path& file : files_of(Prepared(ranks()).newest())) {
      const std::string name = file.filename().string();
      const bool is_of_others =
          name.ends_with(".safetensors") && name.find("-00001-of-") == std::string::npos;
      if (GetParam().every_file || !is_of_others) all.push_back(name);
    }
    return all;
  }
};

std::string name_of_damage(const testing::TestParamInfo<Case>& info) {
  return name_of(info.param.ranks) + (info.param.every_file ? "_every_file" : "");
}

TEST_P(DamagedLoad, AFlippedByteOfAnyFile) {
  const std::vector<std::string> files = names();
  ASSERT_GE(files.size(), 5u);
  for (const std::string& file : files) {
    // In the header and in the data of files of pieces.
    const bool twice = file.ends_with(".safetensors");
    for (const double part : twice ? std::vector<double>{0.005, 0.9} : std::vector<double>{0.7}) {
      const Prepared prepared(ranks());
      flip_a_byte(prepared.newest() / file, part);
      // The manifest and its checksum stand for each other.
      expect_older_is_used(prepared, ranks(), file.starts_with("manifest") ? "manifest.json" : file,
                           "damaged");
      if (HasFailure()) return;
    }
  }
}

TEST_P(DamagedLoad, AFileCutOffOrMissing) {
  for (const std::string& file : names()) {
    const bool is_manifest = file.starts_with("manifest");
    {
      const Prepared prepared(ranks());
      cut_off(prepared.newest() / file);
      expect_older_is_used(prepared, ranks(), is_manifest ? "manifest.json" : file,
                           is_manifest ? "damaged" : "when it was written it had");
    }
    const Prepared prepared(ranks());
    fs::remove(prepared.newest() / file);
    expect_older_is_used(prepared, ranks(), file, is_manifest ? "No such file" : "is missing");
    if (HasFailure()) return;
  }
}

// Good checksums around wrong content.
TEST_P(DamagedLoad, APieceMissingOrAnotherFormat) {
  {
    const Prepared prepared(ranks());
    Manifest manifest = read_manifest(prepared.newest());
    const auto last_states =
        std::find_if(manifest.files.begin(), manifest.files.end(),
                     [](const CheckpointFile& f) { return f.name.starts_with("optimizer-00001"); });
    ASSERT_NE(last_states, manifest.files.end());
    manifest.files.erase(last_states);
    write_manifest(prepared.newest(), manifest);
    expect_older_is_used(prepared, ranks(), prepared.newest().string(), "elements are there");
  }
  const Prepared prepared(ranks());
  const fs::path manifest = prepared.newest() / kManifestName;
  const fs::path checksum = manifest.string() + ".xxh3";
  const std::string text = read_text(manifest);
  const std::string other = replaced(text, "\"format\": 1", "\"format\": 2");
  write_text(manifest, other);
  write_text(checksum, replaced(read_text(checksum), checksum_text(checksum_of(text)),
                                checksum_text(checksum_of(other))));
  expect_older_is_used(prepared, ranks(), "manifest.json",
                       "the format is 2; this program reads format 1");
}

TEST_P(DamagedLoad, TheTrackerIsNotTrusted) {
  for (const char* text : {"", "iter_7 nonsense", "1", "999"}) {
    const Prepared prepared(ranks());
    write_text(prepared.run().checkpoints() / "latest_checkpointed_iteration.txt", text);
    std::string err;
    EXPECT_EQ(prepared.run().run({}, &err), 0) << err;
    EXPECT_NE(err.find("resume    " + prepared.newest().string()), std::string::npos) << err;
    EXPECT_EQ(count(err, "alert"), 0u) << err;
    EXPECT_EQ(read_text(prepared.run().checkpoints() / "latest_checkpointed_iteration.txt"), "3");
  }
}

TEST_P(DamagedLoad, WhereNoneIsLeftNothingIsTouched) {
  // Seen in the headers, and only in the data.
  for (const bool in_header : {true, false}) {
    const Prepared prepared(ranks());
    for (const fs::path& place : {prepared.newest(), prepared.older()})
      for (const fs::path& file : files_of(place))
        if (file.filename().string().starts_with("optimizer-00001"))
          flip_a_byte(file, in_header ? 0.005 : 0.9);
    const auto before = contents(prepared.run().checkpoints());
    std::string err;
    EXPECT_EQ(prepared.run().run({}, &err), 3) << err;
    EXPECT_NE(
        err.find("no checkpoint in " + prepared.run().checkpoints().string() + " can be used"),
        std::string::npos)
        << err;
    EXPECT_NE(err.find("optimizer-00001"), std::string::npos) << err;
    EXPECT_TRUE(contents(prepared.run().checkpoints()) == before);
  }
}

TEST_P(DamagedLoad, TheStepThatIsAskedForIsNotReplaced) {
  for (const double part : {0.005, 0.9}) {
    const Prepared prepared(ranks());
    const std::string file = "optimizer-00001-of-0000" +
                             std::string(ranks() == Ranks::Threads ? "4" : "2") + ".safetensors";
    flip_a_byte(prepared.newest() / file, part);
    const auto before = contents(prepared.run().checkpoints());
    std::string err;
    EXPECT_EQ(prepared.run().run({"--checkpoint.step", "2"}, &err), 3) << err;
    EXPECT_NE(err.find(file), std::string::npos) << err;
    EXPECT_TRUE(contents(prepared.run().checkpoints()) == before);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, DamagedLoad, testing::Values(Case{Ranks::Threads, false}),
                         name_of_damage);
INSTANTIATE_TEST_SUITE_P(Slow, DamagedLoad,
                         testing::Values(Case{Ranks::Threads, true}, Case{Ranks::Launch, true}),
                         name_of_damage);

// The same on processes, of which only one meets the damage.
TEST(DamagedLoadOfProcesses, AllGoOnFromTheSame) {
  if (const std::string why = why_not(Ranks::Launch); !why.empty()) GTEST_SKIP() << why;
  const Prepared prepared(Ranks::Launch);
  flip_a_byte(prepared.newest() / "optimizer-00001-of-00002.safetensors", 0.9);
  expect_older_is_used(prepared, Ranks::Launch, "optimizer-00001-of-00002.safetensors", "damaged");
}

}  // namespace
}  // namespace bev::test
