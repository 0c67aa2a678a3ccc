// Samples of Megatron-LM: splits, the three indices, tokens, masks, padding and borders.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "golden_runner/cases.h"
#include "golden_runner/sample_files.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Ids = std::vector<int32_t>;
// The begin and end that a split has, or begin = end when it has none.
size_t wrong_ranges(const std::array<SequenceRange, 3>& got, const Json& wanted) {
  size_t wrong = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (wanted.at(i).is_null()) {
      wrong += got[i].begin == got[i].end ? 0 : 1;
    } else {
      const SequenceRange range{wanted.at(i).at(0).get<int64_t>(),
                                wanted.at(i).at(1).get<int64_t>()};
      wrong += got[i] == range ? 0 : 1;
    }
  }
  return wrong;
}

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-15; }

// The matrix holds where each split begins and ends, as parts of 1.
size_t wrong_matrix(const SplitWeights& weights, const Json& matrix) {
  const double sum = weights[0] + weights[1] + weights[2];
  double begin = 0;
  size_t wrong = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double end = begin + weights[i] / sum;
    const bool same = matrix.at(i).is_null() ? weights[i] == 0
                                             : is_near(matrix.at(i).at(0).get<double>(), begin) &&
                                                   is_near(matrix.at(i).at(1).get<double>(), end);
    wrong += same ? 0 : 1;
    begin = end;
  }
  return wrong;
}

void run_split(const Json& entry, const std::string& name, Report& report) {
  const auto weights = parse_split(entry.at("split").get<std::string>());
  BEV_CHECK(weights.has_value(), Data, "the split is not understood");
  const double sum = (*weights)[0] + (*weights)[1] + (*weights)[2];
  size_t wrong = wrong_matrix(*weights, entry.at("matrix"));
  for (size_t i = 0; i < 3; ++i)
    wrong += is_near(entry.at("normalized").at(i).get<double>(), (*weights)[i] / sum) ? 0 : 1;
  report.check_same(name + ": parts", wrong);
  wrong = 0;
  for (const auto& [count, ranges] : entry.at("ranges").items())
    wrong += wrong_ranges(split_sequences(*weights, std::stoll(count), Compat::Main), ranges);
  report.check_same(name + ": main", wrong);
  if (!entry.contains("classic_bounds")) return;  // made where the classic version was at hand
  wrong = 0;
  for (const auto& [count, bounds] : entry.at("classic_bounds").items()) {
    const auto got = split_sequences(*weights, std::stoll(count), Compat::Classic);
    for (size_t i = 0; i < 3; ++i) wrong += bounds.at(i + 1) == got[i].end ? 0 : 1;
  }
  report.check_same(name + ": classic", wrong);
}

// Which flags a mode of the golden samples stands for.
EodRules ends_of(const std::string& mode) {
  const bool all = mode == "on";
  BEV_CHECK(all || mode == "off" || mode == "eod_mask_loss" || mode == "reset_position_ids" ||
                mode == "reset_attention_mask",
            Data, "the mode {} is not known", mode);
  return {.eod = kEndOfText,
          .mask_eod = all || mode == "eod_mask_loss",
          .reset_positions = all || mode == "reset_position_ids",
          .reset_attention = all || mode == "reset_attention_mask"};
}

bool sample_agrees(const HostBatch& batch, const Ids& text, const Json& row) {
  bool same = text_of(batch) == text && digits_of(batch.weight) == row.at("loss_mask");
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    const auto plain = static_cast<int32_t>(i);
    same = same && (i == 0 || batch.tokens[i] == batch.targets[i - 1]);
    same = same &&
           batch.positions[i] ==
               (row.contains("position_ids") ? row.at("position_ids").at(i).get<int32_t>() : plain);
    same = same &&
           batch.document_start[i] ==
               (row.contains("first_visible") ? row.at("first_visible").at(i).get<int32_t>() : 0);
  }
  return same;
}

// One split of one file: its indices and the samples that are listed.
void run_indices(const Json& all, size_t split, const SafetensorsReader& arrays,
                 const std::shared_ptr<const TokenFile>& file, const std::string& name,
                 Report& report) {
  const std::string split_name = kSplits[split];
  const Json& facts = all.at("splits").at(split_name);
  const auto sequence = all.at("sequence_length").get<int64_t>();
  const SequenceRange range = range_of(*file, all.at("split").get<std::string>(), split);
  if (facts.is_null() || facts.at("samples") == 0) {
    const int64_t tokens = file->stream_begin(range.end) - file->stream_begin(range.begin);
    report.check_same(name + ": nothing there", tokens == 0 ? 0 : 1);
    return;
  }
  MegatronSamplesSpec spec{.index = {.range = range,
                                     .sequence = sequence,
                                     .wanted = facts.at("wanted_samples").get<int64_t>(),
                                     .seed = all.at("seed").get<uint32_t>()},
                           .vocab = kEndOfText + 1};
  const MegatronIndex index = build_megatron_index(*file, spec.index);
  const int64_t per_epoch = (index.tokens_per_epoch - 1) / sequence;
  const auto wanted =
      static_cast<int64_t>(all.at("epochs_wanted").get<double>() * static_cast<double>(per_epoch));
  size_t wrong = 0;
  wrong += facts.at("sequences") == Json::array({range.begin, range.end}) ? 0 : 1;
  wrong += facts.at("tokens_per_epoch") == index.tokens_per_epoch ? 0 : 1;
  wrong += facts.at("wanted_samples") == std::max<int64_t>(1, wanted) ? 0 : 1;
  wrong += facts.at("epochs") == index.epochs ? 0 : 1;
  wrong += facts.at("samples") == index.samples() ? 0 : 1;
  report.check_same(name + ": counts", wrong);
  const auto array = [&](const char* which) { return read_integers(arrays, split_name + which); };
  const std::vector<int64_t> documents(index.documents.begin(), index.documents.end());
  wrong = array(".document_index") == documents ? 0 : 1;
  wrong += array(".sample_index") == flat_starts(index) ? 0 : 1;
  wrong += array(".shuffle_index") == index.shuffle ? 0 : 1;
  report.check_same(name + ": indices", wrong);

  const Json& modes = all.at("samples").at(split_name);
  for (const auto& [mode, rows] : modes.items()) {
    if (mode == "text") continue;
    spec.ends = ends_of(mode);
    const MegatronDataset samples(file, spec);
    wrong = 0;
    for (const Json& row : rows) {
      const auto sample = row.at("sample").get<int64_t>();
      const Ids text = modes.at("text").at(std::to_string(sample)).get<Ids>();
      const HostBatch batch = read_sample(samples, sample, sequence, true);
      wrong += sample_agrees(batch, text, row) ? 0 : 1;
    }
    report.check_same(format("{}: {}, {} samples", name, mode, rows.size()), wrong);
  }
}

void run_order(const fs::path& path, const Json& all, const std::string& name, Report& report) {
  const auto file = open_tokens(path.parent_path(), all.at("prefix").get<std::string>());
  const SafetensorsReader arrays(path.parent_path() / all.at("arrays").get<std::string>());
  const auto weights = parse_split(all.at("split").get<std::string>());
  BEV_CHECK(weights.has_value(), Data, "the split is not understood");
  report.check_same(name + ": split matrix", wrong_matrix(*weights, all.at("split_matrix")));
  for (size_t split = 0; split < 3; ++split) {
    const std::string case_name = name + " " + kSplits[split];
    report.guarded(case_name, kHost,
                   [&] { run_indices(all, split, arrays, file, case_name, report); });
  }
}

}  // namespace

void run_partial(const fs::path& path, const std::string& name, Report& report) {
  const auto file = open_tokens(path.parent_path(), "corpus_eod_text_document");
  size_t number = 0;
  for (const Json& entry : read_json(path)) {
    const std::string case_name = name + " " + std::to_string(number++);
    const auto sequence = entry.at("seq").get<int64_t>();
    const auto pad = padding_in_use(entry.at("pad").get<int32_t>(), kEndOfText);
    const MegatronDataset samples(
        file, {.index = {.range = range_of(*file, entry.at("split").get<std::string>(), 1),
                         .sequence = sequence,
                         .wanted = optional_integer(entry.at("sizes").at(1)),
                         .seed = entry.at("seed").get<uint32_t>(),
                         .drop_partial = entry.at("drop").get<bool>(),
                         .extra_token = entry.at("extra").get<bool>()},
               .vocab = kEndOfText + 1,
               .pad = pad});
    const MegatronIndex& index = samples.index();
    std::vector<int64_t> starts;
    for (const Json& row : entry.at("sample_index"))
      for (const Json& value : row) starts.push_back(value.get<int64_t>());
    size_t wrong = entry.at("samples") == samples.count() ? 0 : 1;
    wrong += entry.at("pad_token_id_in_use") == pad ? 0 : 1;
    wrong += entry.at("document_index").get<Ids>() == index.documents ? 0 : 1;
    wrong += starts == flat_starts(index) ? 0 : 1;
    wrong += entry.at("shuffle_index").get<std::vector<int64_t>>() == index.shuffle ? 0 : 1;
    report.check_same(case_name + ": indices", wrong);
    wrong = 0;
    for (const auto& [sample, item] : entry.at("items").items()) {
      const HostBatch batch = read_sample(samples, std::stoll(sample), sequence, false);
      wrong += item.at("tokens").get<Ids>() == batch.tokens &&
                       item.at("labels").get<Ids>() == batch.targets &&
                       item.at("loss_mask") == digits_of(batch.weight)
                   ? 0
                   : 1;
    }
    report.check_same(format("{}: {} samples", case_name, entry.at("items").size()), wrong);
  }
}

void run_inter_document(const fs::path& path, const std::string& name, Report& report) {
  const auto file = open_tokens(path.parent_path(), "corpus_eod_text_document");
  // What Megatron hands over; the longest piece follows from the borders.
  const Json keys{"cu_seqlens", "labels", "loss_mask", "max_seqlen", "position_ids", "tokens"};
  size_t number = 0;
  for (const Json& entry : read_json(path)) {
    const auto sequence = entry.at("seq").get<int64_t>();
    const MegatronDataset samples(
        file, {.index = {.range = range_of(*file, entry.at("split").get<std::string>(), 0),
                         .sequence = sequence,
                         .wanted = optional_integer(entry.at("sizes").at(0)),
                         .seed = entry.at("seed").get<uint32_t>()},
               .vocab = kEndOfText + 1,
               .separate_sequences = true});
    size_t wrong = 0;
    for (const Json& item : entry.at("items")) {
      const auto sample = item.at("sample").get<int64_t>();
      const HostBatch batch = read_sample(samples, sample, sequence, true);
      std::vector<int64_t> borders{0};
      for (const int64_t length : samples.piece_lengths(sample))
        borders.push_back(borders.back() + length);
      // The golden borders end with the first that is the end.
      borders.erase(std::find(borders.begin(), borders.end(), sequence) + 1, borders.end());
      bool same = item.at("keys") == keys && item.at("tokens").get<Ids>() == batch.tokens &&
                  item.at("position_ids").get<Ids>() == batch.positions &&
                  item.at("cu_seqlens").get<std::vector<int64_t>>() == borders;
      for (size_t i = 0; i < batch.tokens.size(); ++i)
        same = same && batch.document_start[i] == static_cast<int32_t>(i) - batch.positions[i];
      wrong += same ? 0 : 1;
    }
    report.check_same(format("{} {}: {} samples", name, number++, entry.at("items").size()), wrong);
  }
}

void run_cache(const fs::path& dir, const std::string& name, Report& report) {
  constexpr std::string_view kEnding = "description.txt";
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kEnding)) continue;
    const std::string stem = path.substr(0, path.size() - kEnding.size());
    const Json facts = read_json(entry.path());
    const auto split_name = facts.at("index_split").get<std::string>();
    const auto split = static_cast<size_t>(std::find(kSplits.begin(), kSplits.end(), split_name) -
                                           kSplits.begin());
    const auto file = open_tokens(dir.parent_path(), facts.at("dataset_path").get<std::string>());
    const MegatronIndex index = build_megatron_index(
        *file, {.range = range_of(*file, facts.at("split").get<std::string>(), split),
                .sequence = facts.at("sequence_length").get<int64_t>(),
                .wanted = optional_integer(facts.at("num_samples")),
                .seed = facts.at("random_seed").get<uint32_t>()});
    const std::vector<int64_t> documents(index.documents.begin(), index.documents.end());
    size_t wrong = read_npy(stem + "document_index.npy") == documents ? 0 : 1;
    wrong += read_npy(stem + "sample_index.npy") == flat_starts(index) ? 0 : 1;
    wrong += read_npy(stem + "shuffle_index.npy") == index.shuffle ? 0 : 1;
    report.check_same(name + " " + split_name, wrong);
  }
}

void run_samples(const fs::path& dir, const std::string& name, Report& report) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  struct Kind {
    const char* file;
    void (*run)(const fs::path&, const std::string&, Report&);
  };
  constexpr std::array<Kind, 6> kKinds{{{"partial.json", run_partial},
                                        {"inter_document.json", run_inter_document},
                                        {"cache_example", run_cache},
                                        {"blends.json", run_blends},
                                        {"mappings.json", run_mappings},
                                        {"samplers.json", run_samplers}}};
  for (const fs::path& file : files) {
    const std::string case_name = name + "/" + file.filename().string();
    if (file.extension() == ".safetensors") continue;  // belongs to the .json of its name
    if (file.filename() == "splits.json") {
      for (const Json& entry : read_json(file)) {
        const std::string split = case_name + " " + entry.at("split").get<std::string>();
        report.guarded(split, kHost, [&] { run_split(entry, split, report); });
      }
      continue;
    }
    const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                   [&](const Kind& k) { return file.filename() == k.file; });
    if (kind != kKinds.end()) {
      report.guarded(case_name, kHost, [&] { kind->run(file, case_name, report); });
      continue;
    }
    const Json all = file.extension() == ".json" ? read_json(file) : Json();
    if (!all.is_object() || !all.contains("samples") || !all.contains("sequence_length")) {
      report.skip(case_name, "unknown file");
      continue;
    }
    report.guarded(case_name, kHost, [&] { run_order(file, all, case_name, report); });
  }
}

}  // namespace bev::golden
