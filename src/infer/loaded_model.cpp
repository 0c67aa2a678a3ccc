#include "infer/loaded_model.h"

#include "base/check.h"
#include "base/integer.h"
#include "comm/planning_communicator.h"
#include "convert/checkpoint_weights.h"
#include "convert/huggingface/huggingface.h"
#include "convert/weight_source.h"
#include "ops/make_device.h"

namespace bev {

namespace {

// The same calls on the null device tell how much memory they take.
ArenaSizes evaluation_memory(const Config& config, int rank) {
  DryRunModel dry_run(config, rank);
  Executor executor(dry_run.model, 1, {});
  HostBatch batch;
  batch.resize(config.train.micro_batch, dry_run.model.spec.batch);
  executor.evaluate({&batch, 1});
  return executor.peaks();
}

}  // namespace

Config config_of_use(const ModelFolder& folder, const InferenceSetup& use) {
  Config config = folder.config;
  config.device = use.device;
  config.parallel = use.parallel;
  config.train.sequence = use.length;
  config.train.micro_batch = use.sequences;
  config.train.global_batch = use.sequences * data_ranks(config);
  config.train.ramp_start = 0;
  // Sequences are not packed.
  config.data.reset_attention = config.data.separate_sequences = false;
  return config;
}

// Where a vocabulary is made divisible by its padding, the last ranks have less of it.
void require_ids_on_every_rank(const Config& config) {
  const int64_t ranks = config.parallel.tensor, vocab = config.model.vocab;
  BEV_CHECK((ranks - 1) * div_ceil(vocab, ranks) < vocab, Usage,
            "a vocabulary of {} ids leaves none for the last of {} tensor ranks; use fewer", vocab,
            ranks);
}

LoadedModel::LoadedModel(const ModelFolder& folder, const InferenceSetup& use, Device& device,
                         Communicator& world)
    : config_(config_of_use(folder, use)),
      device_(device),
      world_(world),
      groups_(layout_of(config_), world),
      model_(std::make_unique<RankModel>(config_, device, groups_)) {
  model_->env.pass.classes = vocab();
  if (folder.is_fresh) {
    model_->params.initialize(static_cast<uint64_t>(config_.train.seed));
  } else if (folder.is_checkpoint) {
    const CheckpointReader stored(folder.weights);
    CheckpointWeights weights(stored, config_.model.vocab);
    load_weights(weights, model_->params);
    if (groups_.layout().pipeline == 1) weights.check_all_used();
  } else {
    load_huggingface(folder.weights, model_->params, MissingHeads::Zeros);
  }
}

LoadedModel::LoadedModel(const ModelFolder& folder, const InferenceSetup& use,
                         std::unique_ptr<Own> own)
    : LoadedModel(folder, use, *own->device, own->world) {
  own_ = std::move(own);
}

LoadedModel::LoadedModel(const ModelFolder& folder, const DeviceConfig& device, int64_t sequences,
                         int64_t length)
    : LoadedModel(folder, {.device = device, .sequences = sequences, .length = length},
                  std::unique_ptr<Own>(new Own{.device = make_device(device)})) {}

Executor& LoadedModel::executor() {
  if (!executor_) {
    require_ids_on_every_rank(config_);
    executor_ = std::make_unique<Executor>(*model_, 1, evaluation_memory(config_, world_.rank()));
  }
  return *executor_;
}

DryRunModel::DryRunModel(const Config& c, int rank)
    : config(c),
      device(make_null_device(c.device)),
      world_(std::make_unique<PlanningCommunicator>(rank, layout_of(c).world())),
      groups_(layout_of(c), *world_),
      model(config, *device, groups_) {}

}  // namespace bev
