// Blends of Megatron-LM: whole ones with their samples, and the two functions that order them.
#include <algorithm>
#include <array>

#include "base/format.h"
#include "data/megatron/megatron_blend.h"
#include "golden_runner/sample_files.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

size_t wrong_index(const MegatronBlendIndex& index, const SafetensorsReader& arrays,
                   const std::string& key) {
  const std::vector<int64_t> datasets(index.dataset.begin(), index.dataset.end());
  return (read_integers(arrays, key + ".dataset_index") == datasets ? 0 : 1) +
         (read_integers(arrays, key + ".dataset_sample_index") == index.sample ? 0 : 1);
}

void run_function(const Json& entry, const SafetensorsReader& arrays, const std::string& name,
                  Report& report) {
  const auto key = entry.at("name").get<std::string>();
  if (entry.at("function") == "build_exhaustive_blending_indices") {
    const auto sizes = entry.at("sizes").get<std::vector<int64_t>>();
    return report.check_same(name, wrong_index(build_exhaustive_blend(sizes), arrays, key));
  }
  const auto weights = entry.at("weights").get<std::vector<double>>();
  const MegatronBlendIndex index = build_megatron_blend(weights, entry.at("size").get<int64_t>());
  size_t wrong = wrong_index(index, arrays, key);
  for (size_t i = 0; i < weights.size(); ++i)
    wrong += entry.at("counts").at(i) ==
                     std::count(index.dataset.begin(), index.dataset.end(), static_cast<int16_t>(i))
                 ? 0
                 : 1;
  report.check_same(name, wrong);
}

void run_blended_split(const Json& entry, size_t split, const fs::path& dir,
                       const SafetensorsReader& arrays, const std::string& name, Report& report) {
  const std::string split_name = kSplits[split];
  const Json& facts = entry.at("splits").at(split_name);
  const auto prefixes = entry.at("prefixes").get<std::vector<std::string>>();
  const auto sequence = entry.at("seq").get<int64_t>();
  std::vector<double> weights;
  if (!entry.at("weights").is_null()) weights = entry.at("weights").get<std::vector<double>>();
  std::vector<std::optional<int64_t>> requests;
  std::vector<std::shared_ptr<const MegatronDataset>> parts;
  const MegatronBlend blend = blend_megatron(
      prefixes.size(), weights, optional_integer(entry.at("sizes").at(split)), Compat::Main,
      [&](size_t part, std::optional<int64_t> wanted) {
        requests.push_back(wanted);
        const auto file = open_tokens(dir, prefixes[part]);
        parts.push_back(std::make_shared<const MegatronDataset>(
            file,
            MegatronSamplesSpec{
                .index = {.range = range_of(*file, entry.at("split").get<std::string>(), split),
                          .sequence = sequence,
                          .wanted = wanted,
                          .seed = entry.at("seed").get<uint32_t>()},
                .vocab = kEndOfText + 1}));
        return parts.back();
      });
  size_t wrong = facts.at("samples") == blend.size() ? 0 : 1;
  wrong += facts.at("weights_used").get<std::vector<double>>() == blend.weights ? 0 : 1;
  const Json& size = facts.at("size_argument");
  wrong += size.is_null() ? (entry.at("sizes").at(split).is_null() ? 0 : 1)
                          : (size == blend.size() ? 0 : 1);
  for (size_t i = 0; i < prefixes.size(); ++i) {
    const Json& part = facts.at("parts").at(i);
    wrong += part.at("prefix") == prefixes[i] ? 0 : 1;
    wrong += optional_integer(part.at("wanted_samples")) == requests[i] ? 0 : 1;
    wrong += part.at("samples") == parts[i]->count() ? 0 : 1;
    wrong += part.at("epochs") == parts[i]->index().epochs ? 0 : 1;
  }
  report.check_same(name + ": parts", wrong);
  report.check_same(
      name + ": order",
      wrong_index(blend.index, arrays, entry.at("name").get<std::string>() + "." + split_name));
  wrong = 0;
  size_t place = 0;
  for (const Json& first : facts.at("first_texts")) {
    const auto dataset = static_cast<size_t>(blend.index.dataset[place]);
    const HostBatch batch =
        read_sample(*blend.parts[dataset], blend.index.sample[place], sequence, false);
    wrong += first.at("dataset_id") == dataset &&
                     first.at("text").get<std::vector<int32_t>>() == text_of(batch)
                 ? 0
                 : 1;
    ++place;
  }
  report.check_same(format("{}: {} samples", name, place), wrong);
}

}  // namespace

void run_blends(const fs::path& path, const std::string& name, Report& report) {
  fs::path arrays_path = path;
  const SafetensorsReader arrays(arrays_path.replace_extension(".safetensors"));
  for (const Json& entry : read_json(path)) {
    const std::string case_name = name + " " + entry.at("name").get<std::string>();
    report.guarded(case_name, kHost, [&] {
      if (entry.contains("function")) return run_function(entry, arrays, case_name, report);
      for (size_t split = 0; split < 3; ++split)
        if (entry.at("splits").contains(kSplits[split]))
          run_blended_split(entry, split, path.parent_path(), arrays,
                            case_name + " " + kSplits[split], report);
    });
  }
}

}  // namespace bev::golden
