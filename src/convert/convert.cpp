#include "convert/convert.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_survey.h"
#include "config/tokenizer_config.h"
#include "convert/checkpoint_weights.h"
#include "convert/huggingface/huggingface.h"
#include "convert/huggingface/huggingface_config.h"
#include "convert/huggingface/huggingface_weights.h"
#include "convert/megatron/megatron_weights.h"
#include "pipeline/rank_model.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

// Asks for every parameter, so that what is missing, left over or of another shape is known before
// anything is written, and counts.
Conversion survey(std::span<const ParamSpec> specs, WeightSource& source,
                  std::optional<DType> dtype, const fs::path& output) {
  Conversion result{.output = output};
  for (const ParamSpec& spec : specs) {
    const DType stored = source.dtype_of(spec);
    result.parameters += spec.shape.elements();
    result.bytes += spec.shape.elements() * static_cast<int64_t>(size_of(dtype.value_or(stored)));
  }
  source.check_all_used();
  require_disk_space(output.string(), output, static_cast<double>(result.bytes),
                     "the weights take");
  return result;
}

std::vector<TokenizerFile> tokenizer_files_in(const fs::path& dir) {
  std::vector<TokenizerFile> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (is_tokenizer_file(name) && entry.is_regular_file(ignored))
      files.push_back({entry.path(), name});
  }
  std::sort(files.begin(), files.end(),
            [](const TokenizerFile& a, const TokenizerFile& b) { return a.name < b.name; });
  return files;
}

// The files that a checkpoint carries along. The special ids of a T5 are in generation_config.json,
// which transformers writes since 2022, or in config.json alone.
std::vector<TokenizerFile> files_of(const fs::path& dir, const HuggingFaceModel& model) {
  std::vector<TokenizerFile> files = tokenizer_files_in(dir);
  if (model.family != HuggingFaceFamily::T5) return files;
  const auto ids = std::find_if(files.begin(), files.end(), [](const TokenizerFile& file) {
    return file.name == kGenerationConfig;
  });
  if (ids != files.end()) {
    (void)read_generation_config(ids->path, model.model.vocab);
  } else {
    files.push_back({.path = {}, .name = kGenerationConfig, .text = generation_config(model.ids)});
  }
  return files;
}

// A model of Hugging Face. Heads that a BertModel lacks are drawn as in a new run.
class WeightsWithHeads final : public WeightSource {
 public:
  WeightsWithHeads(HuggingFaceWeights& stored, uint64_t seed) : stored_(stored), seed_(seed) {}

  DType dtype_of(const ParamSpec& spec) override {
    if (stored_.lacks(spec)) drawn_.insert(spec.name);
    return stored_.dtype_of(spec);
  }
  void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) override {
    if (drawn_.contains(spec.name)) return initial_values(spec, seed_, where, dtype, to);
    stored_.read(spec, where, dtype, to);
  }
  void check_all_used() override { stored_.check_all_used(); }

  const std::set<std::string>& drawn() const { return drawn_; }

 private:
  HuggingFaceWeights& stored_;
  uint64_t seed_;
  std::set<std::string> drawn_;
};

// Of a model that comes without a training.
Config config_of(const ModelConfig& model) {
  constexpr int64_t kUsualSequence = 1024;
  Config config;
  config.model = model;
  config.train.sequence =
      model.positions > 0 ? std::min(model.positions, kUsualSequence) : kUsualSequence;
  config.train.micro_batch = 1;
  return config;
}

Conversion to_checkpoint(const ModelConfig& model, WeightSource& source,
                         std::vector<TokenizerFile> files, const fs::path& root, std::string origin,
                         const ConversionOptions& options) {
  const Config config = config_of(model);
  const std::vector<ParamSpec> specs = model_parameters(config);
  Conversion result = survey(specs, source, std::nullopt, CheckpointFolder(root).place_of(-1));
  if (options.on_start) options.on_start(result.bytes);
  write_release(root, config, specs, source,
                {.program = options.program,
                 .origin = std::move(origin),
                 .files = std::move(files),
                 .block_bytes = options.block_bytes,
                 .on_progress = options.on_progress});
  return result;
}

}  // namespace

Conversion huggingface_to_checkpoint(const fs::path& from, const fs::path& root,
                                     const ConversionOptions& options) {
  std::error_code ignored;
  BEV_CHECK(fs::is_directory(from, ignored), Data, "there is no folder {}", from.string());
  check_release_place(root);
  const ErrorContext context(format("reading the model in {}", from.string()));
  HuggingFaceWeights stored(from, MissingHeads::Zeros);
  stored.check_copies();
  WeightsWithHeads source(stored, static_cast<uint64_t>(TrainConfig().seed));
  Conversion result = to_checkpoint(
      stored.description().model, source, files_of(from, stored.description()), root,
      format("weights of a {} model of Hugging Face", name_of(stored.description().family)),
      options);
  if (!source.drawn().empty())
    result.notes.push_back(
        format("drawn as in a new run: {}; config.json says BertModel, which stores "
               "no heads, so the checkpoint predicts nothing before it is trained",
               fmt::join(source.drawn(), ", ")));
  if (!stored.left_out().empty())
    result.notes.push_back(
        format("left out {}: config.json says BertForMaskedLM, which has no binary head; with "
               "architectures BertForPreTraining they are converted too",
               fmt::join(stored.left_out(), ", ")));
  return result;
}

Conversion megatron_to_checkpoint(const fs::path& from, const fs::path& root,
                                  std::optional<int64_t> vocab, const ConversionOptions& options) {
  std::error_code ignored;
  BEV_CHECK(fs::is_directory(from, ignored), Data, "there is no folder {}", from.string());
  check_release_place(root);
  const ErrorContext context(format("reading the model in {}", from.string()));
  MegatronModel model = read_megatron_model(from);
  if (vocab) model.model.vocab = *vocab;
  MegatronWeights source(from, model);
  return to_checkpoint(model.model, source, tokenizer_files_in(from), root,
                       format("weights of iteration {} of Megatron-LM, {} x {} ranks",
                              model.iteration, model.tensor, model.pipeline),
                       options);
}

Conversion checkpoint_to_huggingface(const fs::path& from, const fs::path& dir,
                                     const HuggingFaceExport& how,
                                     const ConversionOptions& options) {
  OpenedCheckpoint opened = open_checkpoint(from);
  const CheckpointReader& stored = *opened.stored;
  const ErrorContext context(format("reading the checkpoint {}", stored.folder().string()));
  const Config config = read_checkpoint_config(stored);
  (void)huggingface_family(config);
  check_huggingface_replaceable(dir);
  CheckpointWeights source(stored, config.model.vocab, how.dtype == DType::f32);
  const std::vector<ParamSpec> specs = model_parameters(config);
  Conversion result = survey(specs, source, how.dtype, dir);
  result.notes = std::move(opened.passed_over);
  std::vector<TokenizerFile> files = carried_tokenizer_files(stored);
  if (files.empty()) files = tokenizer_files(tokenizer_spec(config));
  const DecoderIds ids = decoder_ids(config, files);
  if (options.on_start) options.on_start(result.bytes);
  write_huggingface(dir, config, specs, source,
                    {.most_shard_bytes = how.most_shard_bytes,
                     .dtype = how.dtype,
                     .block_bytes = options.block_bytes,
                     .files = std::move(files),
                     .ids = ids,
                     .on_progress = options.on_progress});
  return result;
}

}  // namespace bev
