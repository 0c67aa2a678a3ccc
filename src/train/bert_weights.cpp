#include "train/bert_weights.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/restore.h"
#include "config/config_diff.h"
#include "model/family/family.h"

namespace bev {

namespace {

// Fields of a BERT and of a bi-encoder that say nothing about an encoder.
constexpr std::array<std::string_view, 5> kNotOfEncoders{"model.family", "model.binary_head",
                                                         "model.head_activation",
                                                         "model.shared_towers", "model.projection"};

bool concerns_encoders(const ConfigChange& change) {
  const bool is_other =
      std::find(kNotOfEncoders.begin(), kNotOfEncoders.end(), change.path) != kNotOfEncoders.end();
  return change.effect == Effect::Model && change.path.starts_with("model.") && !is_other;
}

// The name of a parameter in a BERT; empty: a BERT has none like it.
std::string name_in_bert(const std::string& parameter) {
  std::string name = parameter;
  for (const std::string_view tower : {kQueryTower, kContextTower})
    if (name.starts_with(tower)) name.erase(0, tower.size());
  return name.starts_with("projection") ? "" : name;
}

}  // namespace

CheckpointReader open_bert(const Config& config) {
  const std::string& folder = config.checkpoint.bert;
  const std::vector<CheckpointPlace> there = find_checkpoints(folder);
  BEV_CHECK(!there.empty(), Data,
            "checkpoint.bert {}: no checkpoint found\n  expected a checkpoint of `bevatron train "
            "pretrain_bert.py`, or of `bevatron convert` with the weights of another program",
            folder);
  CheckpointReader stored(there.front().path);
  const std::string source = there.front().path.string();
  const ModelConfig bert = config_from(stored.manifest().config, source).model;
  BEV_CHECK(bert.family == ModelFamily::Bert, Usage,
            "checkpoint.bert {}: the checkpoint is of model.family {}\n  expected a BERT; --load "
            "begins with a bi-encoder",
            source, name_of_choice(bert.family));
  BEV_CHECK(bert.binary_head || bert.norm_placement == NormPlacement::Post, Usage,
            "checkpoint.bert {}: the BERT has no token types, because it was trained with "
            "--bert-no-binary-head\n  expected a BERT with a binary head, whose encoder has them",
            source);
  std::string differences;
  for (const ConfigChange& change : diff_config(stored.manifest().config, config, source).changes)
    if (concerns_encoders(change)) differences += format("\n  {}", change.text());
  BEV_CHECK(differences.empty(), Usage,
            "checkpoint.bert {}: the BERT is not of the encoders' shape:{}\n  set these fields to "
            "those of the BERT",
            source, differences);
  return stored;
}

void load_bert(const CheckpointReader& bert, TrainingState& state) {
  restore_weights(bert, state.params, state.optimizer, state.shape.vocab,
                  [](const std::string& parameter) { return name_in_bert(parameter); });
}

}  // namespace bev
