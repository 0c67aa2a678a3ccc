#include "bench/generation_bench.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text_table.h"
#include "bench/machine_peak.h"
#include "bench/measure.h"
#include "infer/continuous_batcher.h"

namespace bev {

namespace {

std::vector<int32_t> made_up(int64_t count, int64_t text, int64_t vocab) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((i * 7919 + text * 104729 + 1) % vocab));
  return ids;
}

// What every step reads: of a table whose rows are looked up, next to nothing.
double weights_read(RankModel& model) {
  const bool looks_up = !model.config.model.tied;
  double bytes = 0;
  for (const Param* param : model.params.all()) {
    const Role role = param->spec.role;
    if (role == Role::PositionTable || (looks_up && role == Role::TokenTable)) continue;
    bytes += static_cast<double>(bytes_of(param->value));
  }
  return bytes;
}

double cache_read(const RankModel& model, const GenerationBenchOptions& o) {
  const ModelShape& s = model.shape;
  const double length = static_cast<double>(o.prompt) + static_cast<double>(o.tokens) / 2;
  return static_cast<double>(o.batch) * length *
         static_cast<double>(2 * s.layers * s.kv_heads * s.head_dim) *
         static_cast<double>(size_of(model.params.dtype()));
}

struct Run {
  double first, between;
};

Run generate(ContinuousBatcher& batcher, const GenerationBenchOptions& o, int64_t vocab) {
  const double begin = seconds_now();
  double first = 0, last = 0;
  for (int64_t text = 0; text < o.batch; ++text) {
    GenerationRequest request{
        .prompt = made_up(o.prompt, text, vocab), .tokens = o.tokens, .choice = {.temperature = 0}};
    const auto count = std::make_shared<int64_t>(0);
    batcher.submit(std::move(request), [&, count](const TokenEvent&) {
      last = seconds_now();
      if (++*count == 1) first = last;
    });
  }
  while (!batcher.is_idle()) batcher.step();
  return {first - begin, last - first};
}

double time_forward(LoadedModel& model, const GenerationBenchOptions& o) {
  HostBatch batch;
  batch.resize(o.batch, o.prompt, false);
  for (int64_t text = 0; text < o.batch; ++text) {
    batch.start_sequence(text, text);
    const std::vector<int32_t> ids = made_up(o.prompt, text, model.vocab());
    std::copy(ids.begin(), ids.end(), batch.tokens.begin() + text * o.prompt);
  }
  Executor& executor = model.executor();
  return measure_on(model.device(), [&] { executor.evaluate({&batch, 1}); }, 1.0).median;
}

}  // namespace

GenerationBench bench_generation(const ModelFolder& folder, const DeviceConfig& device,
                                 const GenerationBenchOptions& o) {
  BEV_CHECK(longest_sequence(folder, o.prompt + o.tokens) == o.prompt + o.tokens, Usage,
            "a prompt of {} tokens and {} more: the model has {} positions", o.prompt, o.tokens,
            folder.config.model.positions);
  GenerationBench bench{.options = o};
  const double begin = seconds_now();
  LoadedModel model(folder, device, o.batch, std::max(o.prompt, o.prompt + o.tokens));
  {
    InferenceEngine decoder(model, {.rows = o.batch,
                                    .length = o.prompt + o.tokens,
                                    .page = o.page,
                                    .prefill_tokens = o.batch * o.prompt});
    ContinuousBatcher batcher(decoder);
    generate(batcher,
             {.batch = o.batch, .prompt = o.prompt, .tokens = std::min<int64_t>(o.tokens, 8)},
             model.vocab());
    bench.load_seconds = seconds_now() - begin;
    std::vector<double> first, between;
    for (int64_t run = 0; run < o.runs; ++run) {
      const Run r = generate(batcher, o, model.vocab());
      first.push_back(r.first);
      between.push_back(r.between);
    }
    bench.first_token = summarize(first);
    bench.between = summarize(between);
    bench.graph_launches = decoder.graph_launches();
    bench.memory_bytes = static_cast<double>(model.device().allocated_bytes());
  }
  bench.forward_seconds = time_forward(model, o);
  bench.weight_bytes = weights_read(model.placed());
  bench.cache_bytes = cache_read(model.placed(), o);
  bench.bandwidth = measure_bandwidth(model.device());
  bench.device = name_of_choice(device.kind);
  bench.precision = name_of(model.placed().params.dtype());
  return bench;
}

std::string generation_bench_table(const GenerationBench& b) {
  TextTable row("{:<32}{}");
  const GenerationBenchOptions& o = b.options;
  row("texts, prompt, new tokens",
      format("{}, {}, {} on {} in {}", o.batch, o.prompt, o.tokens, b.device, b.precision));
  row("weights, memory, autotuning", format("{:.1f} s", b.load_seconds));
  row("time to first token", format("{:.2f} ms ({:.2f} - {:.2f})", 1e3 * b.first_token.median,
                                    1e3 * b.first_token.low, 1e3 * b.first_token.high));
  row("prompt tokens per second", format("{:.0f}", b.prefill_rate()));
  row("forward of training", format("{:.0f} tokens per second; prompts reach {:.3f} of it",
                                    b.forward_rate(), b.prefill_rate() / b.forward_rate()));
  row("new tokens per second", format("{:.1f}, {:.3f} ms between tokens", b.decode_rate(),
                                      1e3 * b.between.median / static_cast<double>(o.tokens - 1)));
  row("measured bandwidth", format("{:.1f} GB/s", 1e-9 * b.bandwidth));
  row("floor: weights once a step",
      format("{:.1f} tokens per second ({:.3f} GB); reached {:.3f} of it", b.weight_floor(),
             1e-9 * b.weight_bytes, b.decode_rate() / b.weight_floor()));
  row("floor: weights and cache",
      format("{:.1f} tokens per second (+ {:.3f} GB); reached {:.3f} of it", b.floor(),
             1e-9 * b.cache_bytes, b.decode_rate() / b.floor()));
  row("memory", format("{:.3f} GB on the device", 1e-9 * b.memory_bytes));
  return row.text;
}

std::string generation_bench_json(const GenerationBench& b) {
  const GenerationBenchOptions& o = b.options;
  return Json{{"device", b.device},
              {"precision", b.precision},
              {"batch", o.batch},
              {"prompt", o.prompt},
              {"tokens", o.tokens},
              {"page", o.page},
              {"load_seconds", b.load_seconds},
              {"first_token_seconds", b.first_token.median},
              {"prefill_tokens_per_second", b.prefill_rate()},
              {"forward_tokens_per_second", b.forward_rate()},
              {"decode_tokens_per_second", b.decode_rate()},
              {"copy_bytes_per_second", b.bandwidth},
              {"weight_bytes", b.weight_bytes},
              {"cache_bytes", b.cache_bytes},
              {"decode_floor_tokens_per_second", b.weight_floor()},
              {"decode_floor_with_cache_tokens_per_second", b.floor()},
              {"memory_bytes", b.memory_bytes},
              {"graph_launches", b.graph_launches},
              {"replayed_steps", b.graph_launches}}  // earlier name, until 0.2
      .dump(2);
}

}  // namespace bev
