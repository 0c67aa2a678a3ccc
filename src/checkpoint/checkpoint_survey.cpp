#include "checkpoint/checkpoint_survey.h"

#include "base/check.h"
#include "checkpoint/checkpoint_reader.h"

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

SurveyedCheckpoint look_at(const CheckpointPlace& place) {
  SurveyedCheckpoint found{.place = place, .bytes = bytes_in(place.path)};
  try {
    found.manifest = read_manifest(place.path);
    const StoredCheckpoint opened(place.path);
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

std::vector<SurveyedCheckpoint> survey(const fs::path& path) {
  std::vector<SurveyedCheckpoint> all;
  for (const CheckpointPlace& place : checkpoints_at(path)) all.push_back(look_at(place));
  return all;
}

CheckpointPlace newest_good(const fs::path& path) {
  std::string problem;
  const std::vector<CheckpointPlace> places = checkpoints_at(path);
  for (const CheckpointPlace& place : places) {
    const SurveyedCheckpoint found = look_at(place);
    if (found.is_good()) return place;
    if (problem.empty()) problem = found.problem;
  }
  throw Error(ErrorKind::Data,
              places.size() == 1
                  ? problem
                  : format("{}: none of {} checkpoints can be used; of the newest: {}",
                           path.string(), places.size(), problem));
}

}  // namespace bev
