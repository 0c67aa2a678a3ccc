#include "checkpoint/checkpointed_run.h"

#include <algorithm>
#include <cmath>

#include "app/train/run_start.h"
#include "comm/thread_communicator.h"
#include "data/training_data.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/tiny_models.h"
#include "train/run_checkpoints.h"
#include "unit/data/sentence_files.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"

namespace bev::test {

namespace {

Config divisible(Config c) {
  c.model.layers = 4;
  c.model.heads = 4;
  c.model.vocab = 29;
  c.model.vocab_multiple = 8;
  c.model.hidden_dropout = 0.1;
  c.model.attention_dropout = 0.1;
  c.train.sequence = 8;
  c.train.micro_batch = 1;
  c.train.global_batch = 8;
  c.train.iterations = 4;
  c.train.output = "";
  c.eval.interval = 0;
  c.device.threads = 1;
  c.device.cache = "off";
  c.optim.warmup_iterations = 2;
  return c;
}

std::vector<double> values_of(const CheckpointReader& stored,
                              const CheckpointReader::Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.shape.elements()));
  stored.read(tensor, whole_of(tensor.shape), DType::f64,
              reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// Elements of a tensor that mean something, as a prefix and without a hole.
struct Meaning {
  size_t count;
  size_t hole_begin = 0, hole_end = 0;
};

Meaning meaning_of(const std::string& name, const Shape& shape, const Config& config) {
  const ModelConfig& m = config.model;
  const auto count = static_cast<size_t>(shape.elements());
  const std::string parameter(parameter_of(name));
  if (parameter.starts_with("embedding.tokens.") || parameter.starts_with("head."))
    return {static_cast<size_t>(m.vocab * (shape.elements() / shape[0]))};
  if (parameter.ends_with("cross_attention.kv.bias")) return {count, 0, count / 2};
  if (parameter.ends_with("qkv.bias") && m.position != PositionKind::Rope && !m.qk_norm) {
    // Queries, keys and values of as many heads each.
    return {count, count / 3, 2 * (count / 3)};
  }
  return {count};
}

}  // namespace

Config divisible_gpt() { return divisible(tiny_gpt()); }
Config divisible_llama() { return divisible(tiny_llama()); }

namespace {

Config on_sentences(Config c, const std::filesystem::path& folder, SampleOrder order) {
  write_small_corpus(folder);
  c = divisible(c);
  c.model.positions = c.train.sequence = 16;
  c.optim.eps = 1e-4;  // the gradient of the keys' bias is rounding noise
  c.data.mock = false;
  c.data.path = {(folder / "a_sentence").string()};
  c.data.split = "1";
  c.data.order = order;
  c.data.tokenizer = TokenizerKind::BertLower;
  c.data.vocab_file = (folder / "vocab.txt").string();
  return c;
}

}  // namespace

Config sentence_bert(const std::filesystem::path& folder, SampleOrder order) {
  Config c = on_sentences(tiny_bert(), folder, order);
  c.model.norm_placement = NormPlacement::Post;
  c.optim.kind = OptimizerKind::Lamb;
  return c;
}

Config sentence_t5(const std::filesystem::path& folder, SampleOrder order) {
  Config c = on_sentences(tiny_t5(), folder, order);
  c.train.decoder_sequence = 8;
  c.data.vocab_extra_ids = 4;
  return c;
}

Config sentence_biencoder(const std::filesystem::path& folder, SampleOrder order) {
  Config c = on_sentences(tiny_biencoder(), folder, order);
  c.train.micro_batch = 2;
  return c;
}

Config under(Config config, const std::string& layout) {
  config.parallel = parse_layout(layout);
  // All layouts with the same padding.
  config.model.vocab_multiple = 8 / config.parallel.tensor;
  return config;
}

Config first_part(Config config, const std::filesystem::path& folder, int64_t until) {
  config.checkpoint.save = folder.string();
  config.train.exit_interval = until;
  return config;
}

Config second_part(Config config, const std::filesystem::path& folder) {
  config.checkpoint.save = config.checkpoint.load = folder.string();
  config.checkpoint.must_exist = true;
  // The padding is the checkpoint's, whatever a new run would have.
  config.model.vocab_multiple = 5;
  return config;
}

std::filesystem::path place_of(const std::filesystem::path& folder, int64_t iteration) {
  return CheckpointFolder(folder).place_of(iteration);
}

namespace {

// Keeps what the first rank reports; a disturbance sees every rank.
class OutcomeLog final : public TrainLog {
 public:
  OutcomeLog(RunOutcome& outcome, const Disturbance& disturb, TrainingState& state)
      : outcome_(outcome), disturb_(disturb), state_(state), rank_(state.groups.world().rank()) {}

  void iteration(const Progress& p) override {
    if (rank_ == 0) outcome_.iterations.push_back(p);
    if (disturb_) disturb_(rank_, p, state_);
  }
  void event(const GuardEvent& e) override {
    if (rank_ == 0) outcome_.events.push_back(e);
  }

 private:
  RunOutcome& outcome_;
  const Disturbance& disturb_;
  TrainingState& state_;
  int rank_;
};

// The checkpoints of `bevatron train` without log lines.
class QuietCheckpoints final : public Checkpointing {
 public:
  QuietCheckpoints(const Config& config, app::RunInit& start, RunOutcome& outcome)
      : start_(start),
        folder_(config.checkpoint.save),
        checkpoints_(start.state(),
                     {.folder = folder_,
                      .config = config,
                      .schedule = start.schedule(),
                      .config_text = "# none\n",
                      .history = start.history(),
                      .ended = [&start, &outcome](const SaveReport& r) {
                        if (start.state().groups.world().rank() == 0 && !r.failure.empty())
                          outcome.save_failures.push_back(r.failure);
                      }}) {}

  bool is_due(int64_t iteration) const override { return checkpoints_.is_due(iteration); }
  void save(const RunPosition& position) override { checkpoints_.save(position); }
  void poll() override { checkpoints_.poll(); }
  bool finish() override { return checkpoints_.finish(); }
  RunPosition roll_back(int64_t last_iteration) override {
    return start_.roll_back_to(CheckpointFolder(folder_), last_iteration, nullptr);
  }

 private:
  app::RunInit& start_;
  std::filesystem::path folder_;
  RunCheckpoints checkpoints_;
};

}  // namespace

RunOutcome run_checkpointed(const Config& given, std::shared_ptr<const Dataset> samples,
                            const Disturbance& disturb) {
  RunOutcome outcome;
  const ResumePoints points = find_resume_points(given.checkpoint);
  const Config config = with_padding_of(points, given);
  TrainingData data;
  if (!samples && !config.data.mock) {
    data = open_training_data(config);
  } else {
    data.train = samples ? samples : std::make_shared<UnevenDataset>(config.model.vocab);
  }
  run_ranks(layout_of(config).world(), std::chrono::seconds(120), [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_device(config.device);
    ProcessGroups groups(layout_of(config), world);
    app::RunInit start(config, points, *device, groups,
                       dry_run(config, {.rank = world.rank()}).arenas, nullptr);
    std::optional<QuietCheckpoints> checkpoints;
    if (!config.checkpoint.save.empty()) checkpoints.emplace(config, start, outcome);
    OutcomeLog log(outcome, disturb, start.state());
    TrainLoop trainer(start.state(), data, start.start(), log,
                      checkpoints ? &*checkpoints : nullptr);
    const TrainSummary summary = trainer.run();
    if (world.rank() == 0) outcome.summary = summary;
  });
  return outcome;
}

Worst worst_difference(const CheckpointReader& a, const CheckpointReader& b, const Config& config) {
  Worst worst;
  if (a.tensors().size() != b.tensors().size()) return {INFINITY, "another number of tensors"};
  for (const auto& [name, tensor] : a.tensors()) {
    const CheckpointReader::Tensor* other = b.find(name);
    if (other == nullptr) return {INFINITY, name};
    const std::vector<double> x = values_of(a, tensor), y = values_of(b, *other);
    const Meaning meaning = meaning_of(name, tensor.shape, config);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < meaning.count; ++i) {
      if (i >= meaning.hole_begin && i < meaning.hole_end) continue;
      difference += (x[i] - y[i]) * (x[i] - y[i]);
      norm += x[i] * x[i];
    }
    const double relative = std::sqrt(difference / std::max(norm, 1e-300));
    if (!(relative <= worst.difference)) worst = {relative, name};
  }
  return worst;
}

}  // namespace bev::test
