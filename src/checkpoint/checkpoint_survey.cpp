#include "checkpoint/checkpoint_survey.h"

#include <exception>

#include "base/check.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "config/parse/load.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    const uintmax_t size = entry->file_size(ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

CheckpointInfo look_at(const CheckpointPlace& place) {
  CheckpointInfo found{.place = place, .bytes = bytes_in(place.path)};
  try {
    found.manifest = read_manifest(place.path);
    const CheckpointReader opened(place.path);
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    found.problem = error.what();
  }
  return found;
}

}  // namespace

std::vector<CheckpointPlace> checkpoints_at(const fs::path& path) {
  std::vector<CheckpointPlace> places = find_checkpoints(path);
  BEV_CHECK(
      !places.empty(), Data,
      "{} holds no checkpoints: neither the folder nor checkpoints/ in it has folders such as "
      "iter_0000100",
      path.string());
  return places;
}

std::vector<CheckpointInfo> survey(const fs::path& path) {
  std::vector<CheckpointInfo> all;
  for (const CheckpointPlace& place : checkpoints_at(path)) all.push_back(look_at(place));
  return all;
}

CheckpointPlace newest_good(const fs::path& path) {
  std::string problem;
  const std::vector<CheckpointPlace> places = checkpoints_at(path);
  for (const CheckpointPlace& place : places) {
    const CheckpointInfo found = look_at(place);
    if (found.is_good()) return place;
    if (problem.empty()) problem = found.problem;
  }
  throw Error(ErrorKind::Data,
              places.size() == 1
                  ? problem
                  : format("{}: none of {} checkpoints can be used; of the newest: {}",
                           path.string(), places.size(), problem));
}

namespace fs = std::filesystem;

namespace {

// Where and how the training ran is no matter of the model, and need not be possible here; what a
// model that was only converted does not say is filled in.
void without_machine(Config& config) {
  config.parallel = {};
  config.recompute = {};
  config.checkpoint = {};
  config.device = {.kind = DeviceKind::Cpu};
  config.optim.gradients = config.optim.first_moment = config.optim.second_moment =
      StatePrecision::F32;
  if (config.train.micro_batch == 0) config.train.micro_batch = 1;
  if (config.train.sequence == 0) config.train.sequence = config.model.positions;
}

}  // namespace

OpenedCheckpoint open_checkpoint(const fs::path& path) {
  OpenedCheckpoint opened;
  std::exception_ptr first;
  for (const CheckpointPlace& place : find_checkpoints(path)) {
    try {
      opened.stored = std::make_unique<CheckpointReader>(place.path);
      return opened;
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Data) throw;
      if (first == nullptr) first = std::current_exception();
      opened.passed_over.push_back(format("{} is not used: {}", place.path.string(), error.what()));
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
  throw Error(ErrorKind::Data,
              format("{} holds no checkpoint: neither a manifest.json nor folders release or "
                     "iter_0000100",
                     path.string()));
}

Config read_checkpoint_config(const CheckpointReader& stored) {
  (void)stored.read_file(kCheckpointConfig);
  const std::vector<std::string> args{(stored.folder() / kCheckpointConfig).string()};
  Config config = load(args, {}, Purpose::Plan, without_machine).config;
  config.model.vocab_multiple = 1;
  return config;
}

std::vector<TokenizerFile> carried_tokenizer_files(const CheckpointReader& stored) {
  std::vector<TokenizerFile> files;
  for (const CheckpointFile& file : stored.manifest().files) {
    if (file.holds_pieces || !is_tokenizer_file(file.name)) continue;
    (void)stored.read_file(file.name);
    files.push_back({stored.folder() / file.name, file.name});
  }
  return files;
}

}  // namespace bev
