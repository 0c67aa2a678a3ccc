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

DecoderLimits resolved(DecoderLimits limits) {
  BEV_CHECK(limits.rows > 0 && limits.length > 0 && limits.page > 0, Internal,
            "a decoder for {} rows of {} tokens in pages of {}", limits.rows, limits.length,
            limits.page);
  limits.page = std::min(limits.page, limits.length);
  if (limits.pages == 0) limits.pages = limits.rows * div_ceil(limits.length, limits.page);
  if (limits.prefill_tokens == 0)
    limits.prefill_tokens = std::min(limits.rows * limits.length, kMostPrefill);
  limits.prefill_tokens = std::max(limits.prefill_tokens, limits.length);
  return limits;
}

ArenaSizes sizes_for(const Config& config, int rank, const DecoderLimits& limits) {
  RehearsedModel rehearsed(config, rank);
  Decoder::Runner runner(rehearsed.model, limits, {});
  runner.rehearse();
  return runner.peaks();
}

}  // namespace

Decoder::Decoder(LoadedModel& model, const DecoderLimits& limits) : model_(model) {
  const DecoderLimits all = resolved(limits);
  const int rank = model.world().rank();
  runner_ = std::make_unique<Runner>(model.placed(), all, sizes_for(model.config(), rank, all));
  if (!model.device().is_asynchronous()) return;
  Rehearsal rehearsal(model.device());
  runner_->rehearse();
  model.device().compute_stream().synchronize();
  rehearsal.finish();
}

Decoder::~Decoder() {
  if (calls_ == nullptr) return;
  try {
    calls_->tell(DecoderCall::Kind::End);
  } catch (const std::exception&) {
    // Those who follow have failed, which whoever waits for them has heard.
  }
}

const DecoderLimits& Decoder::limits() const { return runner_->limits(); }
int64_t Decoder::vocab() const { return runner_->vocab(); }
bool Decoder::fits(int64_t prompts, int64_t longest) const {
  return runner_->fits(prompts, longest);
}

void Decoder::prefill(std::span<const DecoderRow> rows) {
  if (calls_) calls_->tell(DecoderCall::Kind::Prefill, rows);
  runner_->prefill(rows);
}

std::vector<double> Decoder::score(std::span<const DecoderRow> rows) {
  if (calls_) calls_->tell(DecoderCall::Kind::Score, rows);
  return runner_->score(rows);
}

void Decoder::decode(std::span<const DecoderRow> rows) {
  if (calls_) calls_->tell(DecoderCall::Kind::Decode, rows);
  runner_->decode(rows, 0);
}

void Decoder::decode_further(std::span<const DecoderRow> rows) {
  if (calls_) calls_->tell(DecoderCall::Kind::DecodeFurther, rows);
  runner_->decode(rows, 1);
}

std::span<const Chosen> Decoder::collect() {
  if (calls_) calls_->note_collected();
  return runner_->collect();
}

std::vector<float> Decoder::logits() {
  if (calls_) calls_->tell(DecoderCall::Kind::Logits);
  return runner_->logits();
}

void Decoder::copy_page(int32_t from, int32_t to) {
  if (calls_) calls_->tell(DecoderCall::Kind::CopyPage, {}, from, to);
  runner_->copy_page(from, to);
}

void Decoder::lead() {
  if (model_.world().size() > 1)
    calls_ = std::make_unique<DecoderCalls>(model_.world(), model_.device(), limits());
}

void Decoder::keep_followers() {
  if (calls_) calls_->tell(DecoderCall::Kind::Nothing);
}

void Decoder::follow() {
  DecoderCalls calls(model_.world(), model_.device(), limits());
  for (;;) {
    const DecoderCall call = calls.hear();
    for (int32_t i = 0; i < call.collected; ++i) runner_->collect();
    std::vector<DecoderRow> rows;
    for (const DecoderCall::Row& row : call.rows) rows.push_back(row.row());
    switch (call.kind) {
      case DecoderCall::Kind::Nothing: break;
      case DecoderCall::Kind::Prefill: runner_->prefill(rows); break;
      case DecoderCall::Kind::Score: runner_->score(rows); break;
      case DecoderCall::Kind::Decode: runner_->decode(rows, 0); break;
      case DecoderCall::Kind::DecodeFurther: runner_->decode(rows, 1); break;
      case DecoderCall::Kind::Logits: runner_->logits(); break;
      case DecoderCall::Kind::CopyPage: runner_->copy_page(call.from, call.to); break;
      case DecoderCall::Kind::End: return;
    }
  }
}

size_t Decoder::cache_bytes() const { return runner_->cache_bytes(); }
int64_t Decoder::replays() const { return runner_->replays(); }

}  // namespace bev
