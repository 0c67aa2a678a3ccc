#include "base/check.h"
#include "checkpoint/checkpoint_survey.h"
#include "config/parse/field.h"
#include "config/parse/toml.h"
#include "parallel/parallel_layout.h"
#include "report/status_report.h"
#include "train/run_directory.h"

namespace bev::app {

namespace fs = std::filesystem;

namespace {

// What goes wrong with a file is a fact about it.
template <class Read>
void try_to(std::string& problem, Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.kind == ErrorKind::Internal) throw;
    problem = error.what();
  }
}

// As far as this version understands it.
Config config_in(const fs::path& file) {
  Findings ignored;
  Config config;
  for (const Assignment& assignment : read_toml(file, ignored))
    set_value(config, assignment.field->path, assignment.value);
  return config;
}

// Where the checkpoints are: in the folder, or where status or configuration say.
fs::path checkpoints_of(const RunInfo& facts, const std::string& configured) {
  fs::path inside = facts.folder / "checkpoints";
  if (!CheckpointFolder(inside).list().empty()) return inside;
  if (facts.status && !facts.status->checkpoint.empty())
    return fs::path(facts.status->checkpoint).parent_path();
  return configured.empty() ? inside : fs::path(configured);
}

void add_checkpoint(RunInfo& facts, const fs::path& folder, const RunInfo* earlier) {
  const std::vector<CheckpointPlace> places = find_checkpoints(folder);
  if (places.empty()) return;
  facts.newest_checkpoint = places.front().path;
  if (earlier != nullptr && earlier->newest_checkpoint == facts.newest_checkpoint) {
    facts.saved = earlier->saved;
    facts.saved_problem = earlier->saved_problem;
    return;
  }
  try_to(facts.saved_problem, [&] {
    const CheckpointPlace newest = newest_good(folder);
    const Manifest manifest = read_manifest(newest.path);
    facts.saved = {.path = newest.path,
                   .iteration = manifest.iteration,
                   .time = static_cast<double>(manifest.time)};
    if (newest.path != places.front().path)
      facts.saved_problem =
          format("{} is newer, but cannot be used; `bevatron checkpoint list` says why",
                 places.front().path.filename().string());
  });
}

void require_run(const RunInfo& facts) {
  const bool has_any = facts.status || !facts.status_problem.empty() || facts.metrics ||
                       !facts.metrics_problem.empty() || facts.has_config || facts.saved ||
                       !facts.saved_problem.empty();
  const bool is_of_checkpoints = !has_any && !find_checkpoints(facts.folder).empty();
  BEV_CHECK(!is_of_checkpoints, Data,
            "{} holds checkpoints, but is not the folder of a run (train.output); `bevatron "
            "checkpoint list` shows what it holds",
            facts.folder.string());
  BEV_CHECK(has_any, Data,
            "{} is not the folder of a run: it has no status.json, metrics.jsonl, config.toml or "
            "checkpoints/; legal is what train.output named",
            facts.folder.string());
}

}  // namespace

RunInfo run_facts(const fs::path& folder, const RunInfo* earlier) {
  std::error_code error;
  BEV_CHECK(fs::exists(folder, error), Data,
            "there is no folder {}; legal is the folder of a run, which train.output named",
            folder.string());
  BEV_CHECK(fs::is_directory(folder, error), Data,
            "{} is a file; legal is the folder of a run, which train.output named",
            folder.string());
  const RunDirectory run(folder);
  RunInfo facts{.folder = folder};
  try_to(facts.status_problem, [&] { facts.status = read_status(run.status_file()); });
  if (facts.status) facts.life = life_of(facts.status->process);
  try_to(facts.metrics_problem, [&] { facts.metrics = read_metrics_tail(run.metrics_file()); });
  facts.has_config = fs::is_regular_file(run.config_file(), error);
  facts.has_model = fs::is_directory(run.model(), error);
  Config config;
  if (facts.has_config) config = config_in(run.config_file());
  facts.ranks = config.parallel.ranks;
  std::string ignored;
  try_to(ignored, [&] { facts.layout = describe(layout_of(config)); });
  add_checkpoint(facts, checkpoints_of(facts, config.checkpoint.save), earlier);
  require_run(facts);
  return facts;
}

}  // namespace bev::app
