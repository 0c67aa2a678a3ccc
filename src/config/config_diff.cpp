#include "config/config_diff.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/format.h"
#include "config/parse/field.h"
#include "config/parse/notation.h"
#include "config/parse/problem.h"
#include "config/parse/toml.h"
#include "config/parse/value.h"
#include "config/resolve.h"

namespace bev {

namespace {

constexpr std::string_view kOptimizerPath = "optim.kind";
constexpr std::string_view kPositionsPath = "model.positions";
constexpr std::string_view kMicroBatchPath = "train.micro_batch";

constexpr std::array<std::string_view, 16> kScheduleFields{
    "optim.lr",
    "optim.min_lr",
    "optim.decay",
    "optim.decay_iterations",
    "optim.decay_samples",
    "optim.warmup_iterations",
    "optim.warmup_samples",
    "optim.warmup_fraction",
    "optim.warmup_init",
    "optim.wsd_decay",
    "optim.wsd_iterations",
    "optim.wsd_samples",
    "optim.weight_decay",
    "optim.start_weight_decay",
    "optim.end_weight_decay",
    "optim.weight_decay_ramp",
};

Precision precision_of(DType type) {
  switch (type) {
    case DType::f64: return Precision::F64;
    case DType::bf16: return Precision::Bf16;
    case DType::f16: return Precision::F16;
    default: return Precision::F32;
  }
}

// Fills in what follows from other fields. Stored values are in range, but nobody has checked that
// they go together: what cannot follow stays as it is.
Config with_what_follows(Config config) {
  ModelConfig& m = config.model;
  TrainConfig& t = config.train;
  const ParallelConfig& p = config.parallel;
  if (m.heads > 0 && (m.head_dim > 0 || m.width % m.heads == 0)) {
    const ModelShape shape = resolve_model(config);
    m.kv_heads = shape.kv_heads;
    m.head_dim = shape.head_dim;
    m.ffn = shape.ffn;
    m.positions = shape.positions;
    m.decoder_layers = shape.decoder_layers;
  }
  t.decoder_sequence = decoder_sequence(config);
  if (t.global_batch == 0 && p.ranks % (p.tensor * p.context * p.pipeline) == 0)
    t.global_batch = t.micro_batch * data_ranks(config);
  config.device.precision = precision_of(resolve_dtype(config));
  return config;
}

Effect effect_of(const Field& field, const Config& before, const Config& now) {
  // Positions have weights only where they are learned; otherwise they are a limit.
  const bool learned =
      before.model.position == PositionKind::Learned || now.model.position == PositionKind::Learned;
  if (field.path == kPositionsPath && !learned) return Effect::Runtime;
  // The mean over micro-batches depends on their size, and a bi-encoder compares the pairs of one.
  const bool counts =
      now.loss.average == LossAverage::MicroBatch || now.model.family == ModelFamily::Biencoder;
  if (field.path == kMicroBatchPath && counts) return Effect::Numerics;
  return field.about.effect;
}

std::vector<std::string> texts_with(const ConfigDiff& diff, Effect effect) {
  std::vector<std::string> texts;
  for (const ConfigChange& change : diff.changes)
    if (change.effect == effect) texts.push_back(change.text());
  return texts;
}

}  // namespace

std::string ConfigChange::text() const { return format("{} = {} (was {})", path, now, before); }

bool is_schedule_field(std::string_view path) {
  return std::find(kScheduleFields.begin(), kScheduleFields.end(), path) != kScheduleFields.end();
}

ConfigDiff diff_config(const StoredConfig& stored, const Config& now, std::string_view source) {
  const Config before = with_what_follows(config_from(stored, source));
  const Config after = with_what_follows(now);
  ConfigDiff diff;
  for (const Field& field : fields()) {
    const Value old_value = get_value(before, field.path), value = get_value(after, field.path);
    if (is_schedule_field(field.path) || old_value == value) continue;
    diff.changes.push_back({.path = field.path,
                            .before = toml_text(field, old_value),
                            .now = toml_text(field, value),
                            .effect = effect_of(field, before, after)});
  }
  for (const auto& [path, text] : stored) {
    if (find_field(path) != nullptr || path.starts_with(kScheduleEntries)) continue;
    if (const Field* field = find_renamed_field(path)) {
      diff.renamed.push_back(renamed_note(*field));
    } else {
      diff.unknown.push_back(format("{} = {}", path, text));
    }
  }
  return diff;
}

std::string describe(const ConfigDiff& diff, bool finetune) {
  std::string lines;
  for (const std::string& text : texts_with(diff, Effect::Model))
    lines += format("another model: {}\n", text);
  if (!finetune)
    for (const std::string& text : texts_with(diff, Effect::Numerics))
      lines += format("the curve changes: {}\n", text);
  if (!diff.unknown.empty())
    lines += format("not known to this version and left out: {}\n", fmt::join(diff.unknown, ", "));
  if (!diff.renamed.empty()) lines += format("renamed fields: {}\n", fmt::join(diff.renamed, ", "));
  if (const auto texts = texts_with(diff, Effect::Layout); !texts.empty())
    lines += format("another layout: {}\n", fmt::join(texts, ", "));
  std::vector<std::string> others;
  for (const ConfigChange& change : diff.changes)
    if (change.effect == Effect::Runtime) others.push_back(change.path);
  if (!others.empty())
    lines += format("without an effect on the curve: {}\n", fmt::join(others, ", "));
  return lines;
}

void require_resumable(const ConfigDiff& diff, const CheckpointConfig& checkpoint,
                       std::string_view source) {
  std::vector<Problem> problems;
  if (const auto texts = texts_with(diff, Effect::Model); !texts.empty())
    problems.push_back({.what = "the checkpoint holds another model",
                        .where = format("{}", fmt::join(texts, ", ")),
                        .why = "its weights mean nothing, or have no place, in this one",
                        .legal = "these fields as they were; or another checkpoint.load"});
  const bool takes_state = checkpoint.load_optimizer && !checkpoint.finetune;
  for (const ConfigChange& change : diff.changes)
    if (takes_state && change.path == kOptimizerPath)
      problems.push_back(
          {.what = "the checkpoint holds the state of another optimizer",
           .where = change.text(),
           .why = format("{} cannot continue with the state of {}", change.now, change.before),
           .legal = format("{} = {}; or checkpoint.load_optimizer false "
                           "(--no-load-optim), which starts the optimizer anew",
                           change.path, change.before)});
  throw_if_any(problems, format("this configuration for the checkpoint {}", source));
}

namespace {

Value value_of(const Field& field, const std::string& text, std::string_view source) {
  // A default may lie outside the range: nothing was given.
  if (text == toml_text(field, field.standard)) return field.standard;
  Findings findings;
  const std::vector<Assignment> found =
      parse_toml(format("[{}]\n{} = {}\n", field.section(), field.key(), text), source, findings);
  const std::string why =
      !findings.problems.empty() ? findings.problems.front().why : "it is more than one value";
  BEV_CHECK(findings.problems.empty() && found.size() == 1 && found.front().field == &field, Data,
            "{} holds a configuration with {} = {}: {}; legal is {}", source, field.path,
            toml_string(text.substr(0, 80)), why, legal_values(field));
  return found.front().value;
}

}  // namespace

StoredConfig stored_config(const Config& config) {
  StoredConfig stored;
  for (const Field& field : fields())
    stored[field.path] = toml_text(field, get_value(config, field.path));
  return stored;
}

Config config_from(const StoredConfig& stored, std::string_view source) {
  Config config;
  for (const Field& field : fields()) {
    const std::string former = former_path(field);
    auto found = stored.find(field.path);
    if (found == stored.end() && !former.empty()) found = stored.find(former);
    if (found != stored.end())
      set_value(config, field.path, value_of(field, found->second, source));
  }
  return config;
}

}  // namespace bev
