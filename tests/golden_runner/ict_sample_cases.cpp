// Samples of the inverse cloze task by Megatron-LM: blocks, queries, contexts.
#include <algorithm>

#include "base/check.h"
#include "data/ict_dataset.h"
#include "golden_runner/cases.h"
#include "golden_runner/sample_files.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

// The ids of the files' tokenizer.
constexpr int32_t kIctPad = 0, kIctClassify = 2, kIctSeparate = 3;

bool ict_row_agrees(const IctDataset& samples, const Json& row, int64_t length) {
  const auto index = row.at("sample").get<int64_t>();
  HostBatch batch;
  batch.resize(1, query_context_batch(length));
  samples.read(index, batch, 0);
  const auto agrees = [&](const HostText& text, const char* name) {
    const auto tokens = row.at(name).get<std::vector<int32_t>>();
    const auto used =
        tokens.size() - static_cast<size_t>(std::count(tokens.begin(), tokens.end(), kIctPad));
    return text.tokens == tokens && static_cast<size_t>(text.lengths[0]) == used;
  };
  const IctDataset::Block& block = samples.block(index);
  return agrees(batch.text(kQueryText), "query") && agrees(batch.text(kContextText), "context") &&
         row.at("block_data") == Json{block.begin, block.end, block.title, block.number};
}

void run_ict_file(const fs::path& file, const std::string& name, Report& report) {
  const Json all = read_json(file);
  const auto blocks = std::make_shared<const TokenFile>(file.parent_path() / "blocks");
  const auto titles = std::make_shared<const TokenFile>(file.parent_path() / "titles");
  const auto weights = parse_split("80,20,0");
  const auto ranges = split_sequences(*weights, blocks->index().documents(), Compat::Classic);
  constexpr int64_t kValidSamples = 9;
  for (size_t split = 0; split < 2; ++split) {
    const Json& part = all.at(kSplits[split]);
    const auto length = all.at("seq").get<int64_t>();
    const IctDataset samples(
        blocks, {.part = {.documents = ranges[split],
                          .order = SampleOrder::Megatron,
                          .wanted = split == 0 ? all.at("wanted").get<int64_t>() : kValidSamples,
                          .seed = all.at("seed").get<uint64_t>()},
                 .sequence = length,
                 .single_sentences = all.at("one_sent").get<bool>(),
                 .query_in_block = all.at("prob").get<double>(),
                 .vocab = INT32_MAX,
                 .classify = kIctClassify,
                 .separate = kIctSeparate,
                 .pad = kIctPad,
                 .titles = titles});
    Json mapping = Json::array();
    for (int64_t i = 0; i < samples.count(); ++i) {
      const IctDataset::Block& block = samples.block(i);
      mapping.push_back({block.begin, block.end, block.title, block.number});
    }
    size_t wrong = part.at("documents") == ranges[split].end - ranges[split].begin ? 0 : 1;
    wrong += part.at("mapping") == mapping ? 0 : 1;
    report.check_same(format("{} {}: mapping of {} samples", name, kSplits[split], samples.count()),
                      wrong);
    const Json& rows = part.at("rows");
    wrong = 0;
    for (const Json& row : rows) wrong += ict_row_agrees(samples, row, length) ? 0 : 1;
    report.check_same(format("{} {}: {} samples", name, kSplits[split], rows.size()), wrong);
  }
}

}  // namespace

bool is_ict(const fs::path& dir) { return fs::exists(dir / "data" / "blocks.idx"); }

void run_ict(const fs::path& dir, const std::string& name, Report& report) {
  std::vector<fs::path> files, models;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir / "data"))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  for (const fs::directory_entry& entry : fs::directory_iterator(dir))
    if (is_biencoder(entry.path())) models.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::sort(models.begin(), models.end());
  for (const fs::path& file : files) {
    const std::string case_name = name + "/" + file.stem().string();
    report.guarded(case_name, kHost, [&] { run_ict_file(file, case_name, report); });
  }
  for (const fs::path& model : models)
    run_biencoder(model, name + "/" + model.filename().string(), report);
}

}  // namespace bev::golden
