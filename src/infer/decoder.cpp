#include "infer/decoder.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer.h"
#include "device/rehearsal.h"
#include "infer/decoder_runner.h"

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

Decoder::Decoder(LoadedModel& model, const DecoderLimits& limits) {
  const DecoderLimits all = resolved(limits);
  const int rank = model.world().rank();
  runner_ = std::make_unique<Runner>(model.placed(), all, sizes_for(model.config(), rank, all));
  if (!model.device().is_asynchronous()) return;
  Rehearsal rehearsal(model.device());
  runner_->rehearse();
  model.device().compute_stream().synchronize();
  rehearsal.finish();
}

Decoder::~Decoder() = default;

const DecoderLimits& Decoder::limits() const { return runner_->limits(); }
int64_t Decoder::vocab() const { return runner_->vocab(); }
bool Decoder::fits(int64_t prompts, int64_t longest) const {
  return runner_->fits(prompts, longest);
}
void Decoder::prefill(std::span<const DecoderRow> rows) { runner_->prefill(rows); }
std::vector<double> Decoder::score(std::span<const DecoderRow> rows) {
  return runner_->score(rows);
}
void Decoder::decode(std::span<const DecoderRow> rows) { runner_->decode(rows, 0); }
void Decoder::decode_further(std::span<const DecoderRow> rows) { runner_->decode(rows, 1); }
std::span<const Chosen> Decoder::collect() { return runner_->collect(); }
std::vector<float> Decoder::logits() { return runner_->logits(); }
void Decoder::copy_page(int32_t from, int32_t to) { runner_->copy_page(from, to); }
size_t Decoder::cache_bytes() const { return runner_->cache_bytes(); }
int64_t Decoder::replays() const { return runner_->replays(); }

}  // namespace bev
