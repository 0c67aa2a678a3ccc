#include "infer/inference_engine.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer.h"
#include "device/device.h"
#include "infer/engine_calls.h"
#include "infer/engine_runner.h"

namespace bev {

namespace {

constexpr int64_t kMostPrefill = 8192;

EngineLimits resolved(EngineLimits limits) {
  BEV_CHECK(limits.rows > 0 && limits.length > 0 && limits.page > 0, Internal,
            "a decoder for {} rows of {} tokens in pages of {}", limits.rows, limits.length,
            limits.page);
  limits.page = std::min(limits.page, std::max(limits.length, limits.source));
  if (limits.pages == 0)
    limits.pages =
        limits.rows * (div_ceil(limits.length, limits.page) + div_ceil(limits.source, limits.page));
  if (limits.prefill_tokens == 0)
    limits.prefill_tokens = std::min(limits.rows * limits.prompt(), kMostPrefill);
  limits.prefill_tokens = std::max(limits.prefill_tokens, limits.prompt());
  return limits;
}

void check_family(const Config& config, const EngineLimits& limits) {
  const bool is_t5 = config.model.family == ModelFamily::T5;
  BEV_CHECK(is_t5 == (limits.source > 0), Internal, "a decoder with sources of {} tokens",
            limits.source);
  BEV_CHECK(!is_t5 || config.parallel.pipeline == 1, Usage,
            "--pipeline {}: a T5 generates on tensor ranks only; use --pipeline 1, --tensor N",
            config.parallel.pipeline);
}

ArenaSizes sizes_for(const Config& config, int rank, const EngineLimits& limits) {
  DryRunModel dry_run(config, rank);
  InferenceEngine::EngineRunner runner(dry_run.model, limits, {});
  runner.run_all_shapes();
  return runner.peaks();
}

}  // namespace

InferenceEngine::InferenceEngine(LoadedModel& model, const EngineLimits& limits) : model_(model) {
  check_family(model.config(), limits);
  const EngineLimits all = resolved(limits);
  const int rank = model.world().rank();
  runner_ =
      std::make_unique<EngineRunner>(model.placed(), all, sizes_for(model.config(), rank, all));
  if (!model.device().is_asynchronous()) return;
  AutotuneScope autotune(model.device());
  runner_->run_all_shapes();
  model.device().compute_stream().synchronize();
  autotune.finish();
}

InferenceEngine::~InferenceEngine() {
  if (calls_ == nullptr) return;
  try {
    calls_->send(EngineCall::Kind::End);
    // NOLINTNEXTLINE(bugprone-empty-catch): the followers have failed and report it
  } catch (const std::exception&) {
  }
}

const EngineLimits& InferenceEngine::limits() const { return runner_->limits(); }
int64_t InferenceEngine::vocab() const { return runner_->vocab(); }
bool InferenceEngine::fits(int64_t prompts, int64_t longest) const {
  return runner_->fits(prompts, longest);
}

void InferenceEngine::prefill(std::span<const EngineRow> rows) {
  if (calls_) calls_->send(EngineCall::Kind::Prefill, rows);
  runner_->prefill(rows);
}

std::vector<double> InferenceEngine::score(std::span<const EngineRow> rows) {
  if (calls_) calls_->send(EngineCall::Kind::Score, rows);
  return runner_->score(rows);
}

void InferenceEngine::decode(std::span<const EngineRow> rows) {
  if (calls_) calls_->send(EngineCall::Kind::Decode, rows);
  runner_->decode(rows, 0);
}

void InferenceEngine::decode_ahead(std::span<const EngineRow> rows) {
  if (calls_) calls_->send(EngineCall::Kind::DecodeFurther, rows);
  runner_->decode(rows, 1);
}

std::span<const SampledToken> InferenceEngine::collect() {
  if (calls_) calls_->note_collected();
  return runner_->collect();
}

std::vector<float> InferenceEngine::logits() {
  if (calls_) calls_->send(EngineCall::Kind::Logits);
  return runner_->logits();
}

void InferenceEngine::copy_page(int32_t from, int32_t to) {
  if (calls_) calls_->send(EngineCall::Kind::CopyPage, {}, from, to);
  runner_->copy_page(from, to);
}

void InferenceEngine::lead_ranks() {
  if (model_.world().size() > 1)
    calls_ = std::make_unique<EngineCalls>(model_.world(), model_.device(), limits());
}

void InferenceEngine::ping_followers() {
  if (calls_) calls_->send(EngineCall::Kind::Nothing);
}

void InferenceEngine::follow_leader() {
  EngineCalls calls(model_.world(), model_.device(), limits());
  for (;;) {
    const EngineCall call = calls.receive();
    for (int32_t i = 0; i < call.collected; ++i) runner_->collect();
    std::vector<EngineRow> rows;
    rows.reserve(call.rows.size());
    for (const EngineCall::Row& row : call.rows) rows.push_back(row.row());
    switch (call.kind) {
      case EngineCall::Kind::Nothing: break;
      case EngineCall::Kind::Prefill: runner_->prefill(rows); break;
      case EngineCall::Kind::Score: runner_->score(rows); break;
      case EngineCall::Kind::Decode: runner_->decode(rows, 0); break;
      case EngineCall::Kind::DecodeFurther: runner_->decode(rows, 1); break;
      case EngineCall::Kind::Logits: runner_->logits(); break;
      case EngineCall::Kind::CopyPage: runner_->copy_page(call.from, call.to); break;
      case EngineCall::Kind::End: return;
    }
  }
}

size_t InferenceEngine::cache_bytes() const { return runner_->cache_bytes(); }
int64_t InferenceEngine::graph_launches() const { return runner_->graph_launches(); }

}  // namespace bev
