// Samplers, torch's permutation and the mapping of sentences.
#include "base/check.h"
#include "data/megatron/megatron_samplers.h"
#include "data/megatron/sentence_mapping.h"
#include "golden_runner/sample_files.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Batches = std::vector<std::vector<int64_t>>;

size_t wrong_sampler(const Json& entry) {
  const auto kind = entry.at("class").get<std::string>();
  SamplerShape shape{.total = entry.at("total_samples").get<int64_t>(),
                     .ranks = entry.at("data_parallel_size").get<int64_t>()};
  const auto rank = entry.at("data_parallel_rank").get<int64_t>();
  const auto wanted = entry.at("batches").get<Batches>();
  if (kind == "MegatronFullValidationSampler") {
    Batches got;
    for (const int64_t sample : full_validation(shape, rank)) got.push_back({sample});
    return got == wanted ? 0 : 1;
  }
  shape.micro_batch = entry.at("micro_batch_size").get<int64_t>();
  const auto consumed = entry.at("consumed_samples").get<int64_t>();
  if (kind == "MegatronPretrainingSampler")
    return single_batches(shape, consumed, rank, entry.at("drop_last").get<bool>()) == wanted ? 0
                                                                                              : 1;
  BEV_CHECK(kind == "MegatronPretrainingRandomSampler", Data, "the sampler {} is not known", kind);
  const CyclicOrder order(shape, entry.at("data_sharding").get<bool>());
  const Batches got = order.batches(consumed, rank);
  size_t wrong = got == wanted ? 0 : 1;
  wrong += entry.at("epoch") == consumed / order.epoch_samples() ? 0 : 1;
  wrong += entry.at("consumed_after") == consumed + static_cast<int64_t>(got.size()) * shape.step()
               ? 0
               : 1;
  // The same by position, as training asks for it.
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t first =
        consumed + static_cast<int64_t>(i) * shape.step() + rank * shape.micro_batch;
    if (first / order.epoch_samples() != consumed / order.epoch_samples()) break;
    for (size_t k = 0; k < got[i].size(); ++k)
      wrong += order.at(first + static_cast<int64_t>(k)) == got[i][k] ? 0 : 1;
  }
  return wrong;
}

}  // namespace

void run_samplers(const fs::path& path, const std::string& name, Report& report) {
  const Json all = read_json(path);
  size_t number = 0;
  for (const Json& entry : all.at("samplers")) {
    const std::string case_name =
        format("{} {} {}", name, number++, entry.at("class").get<std::string>());
    report.guarded(case_name, kHost, [&] { report.check_same(case_name, wrong_sampler(entry)); });
  }
  for (const auto& [key, wanted] : all.at("torch_randperm(n@seed)").items()) {
    const size_t at = key.find('@');
    std::vector<int64_t> permutation(std::stoull(key.substr(0, at)));
    torch_permutation(static_cast<uint32_t>(std::stoull(key.substr(at + 1))), permutation);
    report.check_same(name + " randperm " + key,
                      wanted.get<std::vector<int64_t>>() == permutation ? 0 : 1);
  }
}

void run_mappings(const fs::path& path, const std::string& name, Report& report) {
  const auto file = open_tokens(path.parent_path(), "corpus_ss_text_sentence");
  fs::path arrays_path = path;
  const SafetensorsReader arrays(arrays_path.replace_extension(".safetensors"));
  for (const Json& entry : read_json(path)) {
    const auto array = entry.at("array").get<std::string>();
    const std::string case_name = name + " " + array;
    report.guarded(case_name, kHost, [&] {
      const std::vector<SentenceRun> runs = map_sentences(
          file->index(), {.first_document = entry.at("documents").at(0).get<int64_t>(),
                          .end_document = entry.at("documents").at(1).get<int64_t>(),
                          .epochs = entry.at("num_epochs").get<int64_t>(),
                          .most_samples = entry.at("max_num_samples").get<int64_t>(),
                          .longest = entry.at("max_seq_length").get<int64_t>(),
                          .short_probability = entry.at("short_seq_prob").get<double>(),
                          .seed = entry.at("seed").get<uint32_t>(),
                          .least_sentences = entry.at("min_num_sent").get<int64_t>()});
      std::vector<int64_t> flat;
      for (const SentenceRun& run : runs) {
        flat.push_back(run.begin);
        flat.push_back(run.end);
        flat.push_back(run.target);
      }
      size_t wrong = entry.at("rows") == runs.size() ? 0 : 1;
      wrong += read_integers(arrays, array) == flat ? 0 : 1;
      report.check_same(case_name, wrong);
    });
  }
}

}  // namespace bev::golden
