// Token files and growing batches, as Megatron-LM made them.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "config/batch_schedule.h"
#include "data/token_file_writer.h"
#include "golden_runner/cases.h"
#include "golden_runner/scratch_folder.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Ids = std::vector<int32_t>;

Ids read(const TokenFile& file, int64_t begin, int64_t count) {
  Ids ids(static_cast<size_t>(count));
  file.read(begin, ids, INT32_MAX);
  return ids;
}

void copy_tokens(const TokenFile& file, const fs::path& prefix) {
  const TokenIndex& index = file.index();
  TokenFileWriter writer(prefix, index.type());
  for (int64_t document = 0; document < index.documents(); ++document) {
    for (int64_t i = index.document_begin(document); i < index.document_begin(document + 1); ++i)
      writer.add_sequence(read(file, file.stream_begin(i), index.length(i)));
    writer.end_document();
  }
  writer.commit();
}

bool same_file(const fs::path& a, const fs::path& b) { return read_text(a) == read_text(b); }

void run_pair(const fs::path& prefix, const Json& facts, const std::string& name, Report& report) {
  const TokenFile file(prefix);
  const TokenIndex& index = file.index();
  int64_t longest = 0, shortest = INT64_MAX, empty = 0;
  for (int64_t i = 0; i < index.sequences(); ++i) {
    longest = std::max(longest, index.length(i));
    shortest = std::min(shortest, index.length(i));
  }
  for (int64_t i = 0; i < index.documents(); ++i)
    empty += index.document_begin(i) == index.document_begin(i + 1) ? 1 : 0;
  const Ids first = facts.at("first_tokens").get<Ids>(), last = facts.at("last_tokens").get<Ids>();
  const auto first_count = static_cast<int64_t>(first.size());
  const auto last_count = static_cast<int64_t>(last.size());
  size_t wrong = 0;
  wrong += facts.at("dtype_code") == static_cast<int>(index.type()) ? 0 : 1;
  wrong += facts.at("sequences") == index.sequences() ? 0 : 1;
  wrong += facts.at("document_index_entries") == index.documents() + 1 ? 0 : 1;
  wrong += facts.at("tokens") == index.tokens() ? 0 : 1;
  wrong += facts.at("empty_documents") == empty ? 0 : 1;
  wrong += facts.at("longest_sequence") == longest ? 0 : 1;
  wrong += facts.at("shortest_sequence") == shortest ? 0 : 1;
  wrong += read(file, 0, first_count) == first ? 0 : 1;
  wrong += read(file, index.tokens() - last_count, last_count) == last ? 0 : 1;
  report.check_same(name + ": counts and tokens", wrong);

  const ScratchFolder scratch;
  const fs::path copy = scratch.path() / "copy";
  copy_tokens(file, copy);
  const bool same =
      same_file(bin_path(copy), bin_path(prefix)) && same_file(idx_path(copy), idx_path(prefix));
  report.check_same(name + ": written again", same ? 0 : 1);
}

void run_ramp(const Json& entry, const std::string& name, Report& report) {
  const auto ramp = entry.at("rampup_batch_size").get<std::vector<int64_t>>();
  const BatchSchedule schedule(ramp.at(0), ramp.at(1), ramp.at(2),
                               entry.at("global_batch_size").get<int64_t>());
  size_t wrong = 0;
  for (const Json& point : entry.at("points"))
    wrong += point.at(1) == schedule.at(point.at(0).get<int64_t>()) ? 0 : 1;
  report.check_same(name + ": sizes", wrong);
  const int64_t samples = entry.at("train_samples").get<int64_t>();
  report.check_same(name + ": iterations",
                    entry.at("update_train_iters") == schedule.steps_in(samples) ? 0 : 1);
  wrong = 0;
  int64_t consumed = 0, iteration = 1, before = 0;
  const Json& changes = entry.at("whole_run").at("batch_changes");
  size_t change = 0;
  for (; consumed < samples; ++iteration) {
    const int64_t batch = schedule.at(consumed);
    if (batch != before) {
      const bool known = change < changes.size() &&
                         changes.at(change) == Json::array({iteration, consumed, batch});
      wrong += known ? 0 : 1;
      ++change;
    }
    before = batch;
    consumed += batch;
  }
  wrong += change == changes.size() && entry.at("whole_run").at("consumed") == consumed ? 0 : 1;
  report.check_same(name + ": changes over the whole run", wrong);
}

}  // namespace

void run_token_files(const fs::path& dir, const std::string& name, Report& report) {
  const Json manifest = read_json(dir / "manifest.json");
  for (const Json& run : manifest.at("runs")) {
    for (const auto& [pair, facts] : run.at("pairs").items()) {
      const std::string case_name = name + "/" + pair;
      const fs::path prefix = dir / pair;
      // Not all files are kept; run_tools checks the digests of those.
      if (!fs::exists(bin_path(prefix)) || !fs::exists(idx_path(prefix))) continue;
      report.guarded(case_name, kHost, [&] { run_pair(prefix, facts, case_name, report); });
    }
  }
  run_tools(dir, name, report);
}

void run_rampup(const fs::path& file, const std::string& name, Report& report) {
  const Json all = read_json(file);
  for (const auto& [kind, entries] : all.items()) {
    size_t index = 0;
    for (const Json& entry : entries) {
      const std::string case_name = name + "/" + kind + " " + std::to_string(index++);
      if (!entry.contains("rampup_batch_size") || entry.contains("decrease_batch_size_if_needed")) {
        report.skip(case_name, "not in this version");
        continue;
      }
      report.guarded(case_name, kHost, [&] { run_ramp(entry, case_name, report); });
    }
  }
}

}  // namespace bev::golden
