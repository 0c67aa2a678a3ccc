// bevatron checkpoint verify: whether every byte of a checkpoint is as it was written.
#include <array>
#include <cstdio>

#include "app/checkpoint/checkpoint_verbs.h"
#include "app/cli/cli_flags.h"
#include "app/cli/progress_line.h"
#include "base/error.h"
#include "base/format.h"
#include "checkpoint/checkpoint_reader.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 1> kCheckpointVerifyFlags{{
    {"--all", "", "of a folder: all of its checkpoints [default: the newest]"},
}};

void read_all(const CheckpointReader& checkpoint, const std::string& name) {
  ProgressLine progress(format("verifying {}", name), static_cast<int64_t>(checkpoint.bytes()),
                        "bytes");
  int64_t done = 0;
  checkpoint.verify([&](size_t bytes) { progress.update(done += static_cast<int64_t>(bytes)); });
}

// Prints what was found; false: it is damaged.
bool verify_one(const CheckpointPlace& place) {
  const std::string name = place.path.filename().string();
  try {
    const CheckpointReader checkpoint(place.path);
    read_all(checkpoint, name);
    fmt::print("{:<14} ok       {} in {} files, {} tensors\n", name,
               as_bytes(static_cast<double>(checkpoint.bytes())),
               checkpoint.manifest().files.size() + 2, checkpoint.tensors().size());
    return true;
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    fmt::print("{:<14} damaged  {}\n", name, error.what());
    return false;
  }
}

}  // namespace

int checkpoint_verify(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "checkpoint verify",
       .summary = "Reads a checkpoint whole and compares all checksums. PATH is a checkpoint, a "
                  "folder of checkpoints or a run. Exit code 0: all is as it was written; 3: "
                  "something is missing or damaged.",
       .flags = kCheckpointVerifyFlags,
       .positional = "PATH",
       .min_positional = 1,
       .max_positional = 1},
      args);
  if (!flags) return 0;
  std::vector<CheckpointPlace> places = checkpoints_at(flags->positional().front());
  if (!flags->has("--all")) places.resize(1);
  size_t damaged = 0;
  for (const CheckpointPlace& place : places) damaged += verify_one(place) ? 0 : 1;
  if (damaged == 0) return 0;
  fmt::print("{} of {} damaged\n", damaged, places.size());
  return exit_code(ErrorKind::Data);
}

}  // namespace bev::app
