// Rules about bi-encoders.
#include "base/format.h"
#include "config/resolve.h"
#include "config/rules/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

// A bi-encoder's parts: see model/family.
Found biencoder_options(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.family != ModelFamily::Biencoder) return {};
  Misfits misfits;
  misfits.require(m.position == PositionKind::Learned, "model.position", "learned");
  misfits.require(m.tied, "model.tied", "true");
  misfits.require(m.window == 0, "model.window", "0");
  const DataConfig& d = f.config.data;
  misfits.require(!d.is_packed(), "data.reset_attention and data.separate_sequences", "false");
  misfits.require(!d.mask_eod && !d.reset_positions, "data.mask_eod and data.reset_positions",
                  "false");
  if (misfits.text().empty()) return {};
  return Problem{
      .what = "model.family biencoder does not have these options",
      .where = f.where({"model.family", "model.position", "model.tied", "model.window",
                        "data.reset_attention", "data.separate_sequences", "data.mask_eod",
                        "data.reset_positions"}),
      .why = "its encoders are BERTs without heads: learned positions, attention to all tokens",
      .legal = misfits.text()};
}

Found options_of_biencoder(const RuleInput& f) {
  const Config& c = f.config;
  if (c.model.family == ModelFamily::Biencoder) return {};
  Misfits misfits;
  misfits.require(!c.model.shared_towers, "model.shared_towers", "false");
  misfits.require(c.model.projection == 0, "model.projection", "0");
  misfits.require(!c.model.scale_scores, "model.scale_scores", "false");
  misfits.require(c.log.top_k.empty(), "log.top_k", "empty");
  misfits.require(c.checkpoint.bert.empty(), "checkpoint.bert", "empty");
  if (misfits.text().empty()) return {};
  return Problem{
      .what = format("model.family {} does not compare queries with contexts",
                     name_of_choice(c.model.family)),
      .where = f.where({"model.family", "model.shared_towers", "model.projection",
                        "model.scale_scores", "log.top_k", "checkpoint.bert"}),
      .why = "these options are a bi-encoder's",
      .legal = format("model.family biencoder, which `bevatron train pretrain_ict.py ...` sets; or "
                      "{}",
                      misfits.text())};
}

Found top_k_are_numbers(const RuleInput& f) {
  const std::vector<int64_t> top_k = top_k_of(f.config.log);
  const TextList& given = f.config.log.top_k;
  if (top_k.size() == given.size() && top_k.size() <= kMostAccuracies) return {};
  return Problem{.what = top_k.size() < given.size()
                             ? std::string("log.top_k is not a list of whole numbers above 0")
                             : format("log.top_k has {} numbers", given.size()),
                 .where = f.where({"log.top_k"}),
                 .why = format("for each of up to {} numbers k, the part of the queries whose "
                               "context is among the k best is reported",
                               kMostAccuracies),
                 .legal = "--retriever-report-topk-accuracies 1 5 20"};
}

// The softmax over a single context is 1: nothing would be learned.
Found several_contexts(const RuleInput& f) {
  const Config& c = f.config;
  const ParallelConfig& p = c.parallel;
  const int64_t one = p.tensor * p.context * p.pipeline;
  if (f.purpose != Purpose::Train || c.model.family != ModelFamily::Biencoder ||
      c.train.micro_batch != 1 || p.ranks != one)
    return {};
  return Problem{.what = "a micro-batch of one pair has no other context",
                 .where = f.where({"train.micro_batch", "parallel.ranks"}),
                 .why =
                     "a query is compared with the contexts of its micro-batch on all "
                     "data-parallel ranks",
                 .legal = "train.micro_batch at least 2; the more, the harder the task"};
}

}  // namespace

std::vector<Rule> biencoder_rules() {
  return {
      {{"model.family", "model.position", "model.tied", "model.window", "data.reset_attention",
        "data.separate_sequences", "data.mask_eod", "data.reset_positions"},
       biencoder_options},
      {{"model.family", "model.shared_towers", "model.projection", "model.scale_scores",
        "log.top_k", "checkpoint.bert"},
       options_of_biencoder},
      {{"log.top_k"}, top_k_are_numbers},
      {{"model.family", "train.micro_batch", "parallel.ranks", "parallel.tensor",
        "parallel.context", "parallel.pipeline"},
       several_contexts},
  };
}

}  // namespace bev
