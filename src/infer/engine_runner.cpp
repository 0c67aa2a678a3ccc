#include "infer/engine_runner.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/integer.h"
#include "checkpoint/safetensors.h"
#include "ops/elementwise.h"
#include "ops/sampling.h"
#include "pipeline/rank_model.h"

namespace bev {

namespace {

constexpr size_t kResults = 2;
// Shapes whose work is kept as a CUDA graph: all numbers of rows, and the prompts that come again.
constexpr size_t kPromptGraphs = 64, kTokenGraphs = 64;

int64_t power_of_two(int64_t at_least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(at_least)));
}

// Few lengths, so that what is prepared for one serves many; at most a third is added.
int64_t padded_length(int64_t length) {
  const int64_t unit = std::max<int64_t>(16, power_of_two(length) / 8);
  return round_up(length, unit);
}

// Of those that a rank holds: where there are fewer than ranks, several hold the same one.
int64_t kv_heads_here(const RankModel& model) {
  return std::max<int64_t>(1, model.shape.kv_heads / model.groups.layout().tensor);
}

StageParts parts_here(const RankModel& model) {
  return split_stages(model.spec, model.config)
      .at(static_cast<size_t>(model.groups.coordinate(Axis::Pipeline)));
}

KvShape cache_shape(const RankModel& model, const EngineLimits& limits) {
  return {.pages = limits.pages,
          .page = limits.page,
          .kv_heads = kv_heads_here(model),
          .head_dim = model.shape.head_dim,
          .dtype = model.params.dtype()};
}

size_t bytes_of(int64_t count, DType dtype) { return static_cast<size_t>(count) * size_of(dtype); }

int32_t place_of(std::span<const int32_t> pages, size_t token, size_t page) {
  return static_cast<int32_t>(static_cast<size_t>(pages[token / page]) * page + token % page);
}

// The blocks that the cache is for.
struct CachedBlocks {
  int64_t first, count;
};
CachedBlocks cached_blocks(const RankModel& model, const EngineLimits& limits) {
  if (limits.source > 0) return {model.shape.layers, model.shape.decoder_layers};
  const StageParts parts = parts_here(model);
  return {parts.first_block, parts.blocks};
}

template <class To>
std::vector<To> downloaded(Device& device, const ConstTensor& t) {
  std::vector<std::byte> raw(bytes_of(t));
  device.download(t.data, raw.data(), raw.size());
  std::vector<To> values(static_cast<size_t>(t.shape.elements()));
  convert_elements(raw, t.dtype, std::as_writable_bytes(std::span(values)), DTypeOf<To>::value);
  return values;
}

}  // namespace

InferenceEngine::EngineRunner::EngineRunner(RankModel& model, const EngineLimits& limits,
                                            const ArenaSizes& sizes)
    : model_(model),
      device_(model.device),
      pipeline_(model.groups.over({Axis::Pipeline})),
      limits_(limits),
      pads_(model.config.device.kind == DeviceKind::Cuda),
      most_pages_(div_ceil(limits.length, limits.page)),
      most_source_pages_(div_ceil(limits.source, limits.page)),
      seen_words_(div_ceil(model.shape.vocab, 32)),
      classes_(model.shape.padded_vocab),
      cache_(device_, cached_blocks(model, limits).count, cache_shape(model, limits)),
      attention_(cache_, cached_blocks(model, limits).first),
      cross_(cache_, cached_blocks(model, limits).first),
      stage_(model, attention_,
             {.cross = has_encoder() ? &cross_ : nullptr, .places = most_pages_ * limits.page}),
      keep_(device_, sizes.keep, "activations"),
      scratch_(device_, sizes.scratch, "scratch"),
      recompute_(device_, sizes.recompute, "recomputation"),
      prompts_(device_, sizes.batch),
      tokens_(device_, sizes.batch),
      logits_(device_, bytes_of(limits.rows * classes_, model.params.dtype()), "logits"),
      ids_(device_, bytes_of(limits.rows, DType::i32), "batches"),
      logprobs_(device_, bytes_of(limits.rows, accumulation_of(model.params.dtype())), "batches"),
      seen_(device_, bytes_of(limits.rows * seen_words_, DType::i32), "batches"),
      losses_(device_, bytes_of(limits.prefill_tokens, accumulation_of(model.params.dtype())),
              "scalars"),
      prompt_graphs_(device_, kPromptGraphs),
      token_graphs_(device_, kTokenGraphs) {
  if (device_.kind() == DeviceKind::Null) return;
  for (size_t i = 0; i < kResults; ++i)
    results_.emplace_back(device_, ids_.bytes() + logprobs_.bytes());
}

Tensor InferenceEngine::EngineRunner::logits_of(int64_t rows) const {
  return tensor_over(logits_.data(), model_.params.dtype(), {rows, classes_});
}
Tensor InferenceEngine::EngineRunner::ids_of(int64_t rows) const {
  return tensor_over(ids_.data(), DType::i32, {rows});
}
Tensor InferenceEngine::EngineRunner::logprobs_of(int64_t rows) const {
  return tensor_over(logprobs_.data(), accumulation_of(model_.params.dtype()), {rows});
}
Tensor InferenceEngine::EngineRunner::seen_of(int64_t rows) const {
  return tensor_over(seen_.data(), DType::i32, {rows, seen_words_});
}

int64_t InferenceEngine::EngineRunner::longest_of(std::span<const EngineRow> rows) const {
  int64_t longest = 0;
  for (const EngineRow& row : rows)
    longest = std::max(longest, std::ssize(has_encoder() ? row.source : row.tokens));
  return longest;
}

Exec InferenceEngine::EngineRunner::exec() {
  return {device_, device_.compute_stream(), keep_, scratch_, recompute_};
}

InferenceEngine::EngineRunner::PromptShape InferenceEngine::EngineRunner::padded(
    int64_t prompts, int64_t longest) const {
  if (!pads_) return {prompts, longest};
  const int64_t length = std::min(padded_length(longest), limits_.prompt());
  return {std::min(power_of_two(prompts), limits_.rows), length};
}

int64_t InferenceEngine::EngineRunner::padded_rows(int64_t rows) const {
  return pads_ ? std::min(power_of_two(rows), limits_.rows) : rows;
}

bool InferenceEngine::EngineRunner::fits(int64_t prompts, int64_t longest) const {
  return prompts <= limits_.rows && longest <= limits_.prompt() &&
         padded(prompts, longest).tokens() <= limits_.prefill_tokens;
}

// The bits of the tokens that rows have, where their choice depends on it.
void InferenceEngine::EngineRunner::put_seen(std::span<const EngineRow> rows) {
  std::vector<int32_t> words(static_cast<size_t>(seen_words_));
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].choice.repetition_penalty == 1 || device_.kind() == DeviceKind::Null) continue;
    std::fill(words.begin(), words.end(), 0);
    for (const int32_t id : rows[row].tokens) {
      int32_t& word = words[static_cast<size_t>(id / 32)];
      word = static_cast<int32_t>(static_cast<uint32_t>(word) | uint32_t{1} << (id % 32));
    }
    const size_t bytes = words.size() * sizeof(int32_t);
    device_.upload(words.data(), seen_.data() + row * bytes, bytes);
  }
}

void InferenceEngine::EngineRunner::put_tokens(std::span<const EngineRow> rows) {
  if (device_.kind() == DeviceKind::Null) return;
  std::vector<int32_t> ids;
  for (const EngineRow& row : rows) ids.push_back(row.tokens.back());
  device_.upload(ids.data(), ids_.data(), ids.size() * sizeof(int32_t));
}

InferenceEngine::EngineRunner::Choice InferenceEngine::EngineRunner::put_choice(
    InputUploader& inputs, std::span<const EngineRow> rows, int64_t count, int64_t ahead) {
  std::vector<double> options;
  std::vector<int64_t> keys;
  for (const EngineRow& row : rows) {
    const SamplingOptions& c = row.choice;
    options.insert(options.end(), {c.temperature, static_cast<double>(c.top_k), c.top_p, c.min_p,
                                   c.repetition_penalty});
    keys.insert(keys.end(), {row.key, std::ssize(row.tokens) + ahead});
  }
  // Rows that nobody reads take the likeliest, which is the least work.
  const double unread[] = {0, 0, 1, 0, 1};
  for (auto row = std::ssize(rows); row < count; ++row) {
    options.insert(options.end(), std::begin(unread), std::end(unread));
    keys.insert(keys.end(), {0, 0});
  }
  return {.options = inputs.put<double>(options, {count, ops::kChoiceColumns}, "choice.options"),
          .keys = inputs.put<int64_t>(keys, {count, 2}, "choice.keys")};
}

void InferenceEngine::EngineRunner::pass_stages(Exec& ex, const TextView& micro,
                                                const InferenceOutputs& outputs) {
  const int rank = pipeline_.rank();
  const Shape shape{micro.tokens_count(), model_.shape.width};
  Tensor input, output;
  if (rank > 0) {
    input = keep_.allocate(shape, model_.params.dtype(), "stage.input");
    pipeline_.recv(ex, input, rank - 1, Channel::Forward);
  }
  if (!is_last_stage()) output = keep_.allocate(shape, model_.params.dtype(), "stage.output");
  stage_.forward(ex, micro, input, output, outputs);
  if (!is_last_stage())
    pipeline_.wait_send(ex, pipeline_.send(ex, output, rank + 1, Channel::Forward));
}

void InferenceEngine::EngineRunner::choose(Exec& ex, const TextView& micro, ConstTensor logit_rows,
                                           int64_t rows, const Choice& choice) {
  keep_.release(0);
  ArenaScope scope(scratch_);
  Communicator& tensor = model_.groups.over({Axis::Tensor});
  const Tensor logits = logits_of(rows);
  const int64_t part = classes_ / tensor.size();
  const Tensor here = tensor.size() == 1 || !is_last_stage()
                          ? logits
                          : scratch_.allocate({rows, part}, logits.dtype, "decoder.logits");
  pass_stages(ex, micro, {.logit_rows = logit_rows, .logits = here});
  if (is_last_stage()) {
    if (tensor.size() > 1) {
      const Tensor all =
          scratch_.allocate({rows * tensor.size(), part}, logits.dtype, "decoder.parts");
      tensor.all_gather(ex, here, all);
      for (int64_t i = 0; i < tensor.size(); ++i)
        ops::copy(ex,
                  {.in = slice(all, 0, i * rows, rows), .out = slice(logits, 1, i * part, part)});
    }
    ops::sample_tokens(ex, {.logits = logits,
                            .classes = model_.shape.vocab,
                            .options = choice.options,
                            .keys = choice.keys,
                            .seen = seen_of(rows),
                            .ids = ids_of(rows),
                            .logprobs = logprobs_of(rows)});
  }
  if (pipeline_.size() > 1) {
    pipeline_.broadcast(ex, ids_of(rows), pipeline_.size() - 1);
    pipeline_.broadcast(ex, logprobs_of(rows), pipeline_.size() - 1);
  }
}

void InferenceEngine::EngineRunner::send_result(int64_t rows) {
  BEV_CHECK(issued_.size() < kResults, Internal, "{} steps are on their way", issued_.size());
  Issued issued{rows, next_result_, {}};
  next_result_ = (next_result_ + 1) % kResults;
  if (device_.kind() != DeviceKind::Null) {
    const Stream stream = device_.compute_stream();
    std::byte* to = results_[issued.result].data();
    device_.download_on(stream, logprobs_.data(), to, bytes_of(logprobs_of(rows)));
    device_.download_on(stream, ids_.data(), to + logprobs_.bytes(), bytes_of(ids_of(rows)));
    issued.done = stream.record();
  }
  issued_.push_back(issued);
}

InferenceEngine::EngineRunner::Prompts InferenceEngine::EngineRunner::put_prompts(
    std::span<const EngineRow> rows, const PromptShape& shape) {
  const auto count = static_cast<size_t>(shape.tokens());
  const auto length = static_cast<size_t>(shape.length), page = static_cast<size_t>(limits_.page);
  std::vector<int32_t> tokens(count), positions(count), targets(count), places(count, -1);
  std::vector<int32_t> last(static_cast<size_t>(shape.sequences));
  const std::vector<float> weight(count);
  for (size_t i = 0; i < count; ++i) positions[i] = static_cast<int32_t>(i % length);
  for (size_t row = 0; row < rows.size(); ++row) {
    const EngineRow& r = rows[row];
    for (size_t i = 0; i < r.tokens.size(); ++i) {
      const size_t at = row * length + i;
      tokens[at] = r.tokens[i];
      if (i > 0) targets[at - 1] = r.tokens[i];
      if (!r.pages.empty()) places[at] = place_of(r.pages, i, page);
    }
    last[row] = static_cast<int32_t>(row * length + r.tokens.size()) - 1;
  }
  const Shape all{shape.tokens()};
  return {.micro = {.sequences = shape.sequences,
                    .length = shape.length,
                    .tokens = prompts_.put<int32_t>(tokens, all, "batch.tokens"),
                    .targets = prompts_.put<int32_t>(targets, all, "batch.targets"),
                    .positions = prompts_.put<int32_t>(positions, all, "batch.positions"),
                    .weight = prompts_.put<float>(weight, all, "batch.weight"),
                    .rows = {}},
          .places = prompts_.put<int32_t>(places, all, "batch.places"),
          .last = prompts_.put<int32_t>(last, {shape.sequences}, "batch.last")};
}

InferenceEngine::EngineRunner::Prompts InferenceEngine::EngineRunner::put_sources(
    std::span<const EngineRow> rows, const PromptShape& shape) {
  const auto count = static_cast<size_t>(shape.tokens());
  const auto length = static_cast<size_t>(shape.length), page = static_cast<size_t>(limits_.page);
  std::vector<int32_t> tokens(count), positions(count), places(count, -1);
  std::vector<int32_t> lengths(static_cast<size_t>(shape.sequences));
  for (size_t i = 0; i < count; ++i) positions[i] = static_cast<int32_t>(i % length);
  for (size_t row = 0; row < rows.size(); ++row) {
    const EngineRow& r = rows[row];
    for (size_t i = 0; i < r.source.size(); ++i) {
      tokens[row * length + i] = r.source[i];
      if (!r.source_pages.empty()) places[row * length + i] = place_of(r.source_pages, i, page);
    }
    lengths[row] = static_cast<int32_t>(r.source_length);
  }
  const Shape all{shape.tokens()};
  return {.micro = {.sequences = shape.sequences,
                    .length = shape.length,
                    .tokens = prompts_.put<int32_t>(tokens, all, "batch.tokens"),
                    .positions = prompts_.put<int32_t>(positions, all, "batch.positions"),
                    .lengths = prompts_.put<int32_t>(lengths, {shape.sequences}, "batch.lengths")},
          .places = prompts_.put<int32_t>(places, all, "batch.places"),
          .last = {}};
}

void InferenceEngine::EngineRunner::put_cached_sources(std::span<const EngineRow> rows,
                                                       int64_t count) {
  const auto page = static_cast<size_t>(limits_.page);
  std::vector<int32_t> lengths(static_cast<size_t>(count)), last(static_cast<size_t>(count), -1);
  std::vector<int32_t> pages(static_cast<size_t>(count * most_source_pages_));
  for (size_t row = 0; row < rows.size(); ++row) {
    const EngineRow& r = rows[row];
    lengths[row] = static_cast<int32_t>(r.source.size());
    if (!r.source_pages.empty()) last[row] = place_of(r.source_pages, r.source.size() - 1, page);
    std::copy(r.source_pages.begin(), r.source_pages.end(),
              pages.begin() + static_cast<ptrdiff_t>(row) * most_source_pages_);
  }
  cross_.begin_decode(
      tokens_.put<int32_t>(lengths, {count}, "batch.source_lengths"),
      tokens_.put<int32_t>(pages, {count, most_source_pages_}, "batch.source_pages"),
      tokens_.put<int32_t>(last, {count}, "batch.source_last"));
}

void InferenceEngine::EngineRunner::encode(std::span<const EngineRow> rows,
                                           const PromptShape& shape) {
  prompts_.begin();
  const Prompts sources = put_sources(rows, shape);
  Exec ex = exec();
  prompts_.send(ex.stream);
  attention_.begin_prefill({});
  cross_.begin_encode(sources.places);
  issue(prompt_graphs_, shape, [&] {
    keep_.release(0);
    stage_.encode(ex, sources.micro);
  });
}

void InferenceEngine::EngineRunner::prefill(std::span<const EngineRow> rows,
                                            const PromptShape& shape) {
  if (has_encoder()) {
    encode(rows, shape);
    // The start of the decoder's text is a token like those that follow.
    return decode(rows, 0);
  }
  prompts_.begin();
  const Prompts prompts = put_prompts(rows, shape);
  const Choice choice = put_choice(prompts_, rows, shape.sequences, 0);
  Exec ex = exec();
  prompts_.send(ex.stream);
  put_seen(rows);
  attention_.begin_prefill(prompts.places);
  issue(prompt_graphs_, shape,
        [&] { choose(ex, prompts.micro, prompts.last, shape.sequences, choice); });
  send_result(std::ssize(rows));
}

std::vector<double> InferenceEngine::EngineRunner::score(std::span<const EngineRow> rows,
                                                         const PromptShape& shape) {
  prompts_.begin();
  const Prompts prompts = put_prompts(rows, shape);
  Exec ex = exec();
  prompts_.send(ex.stream);
  keep_.release(0);
  attention_.begin_prefill({});
  const Tensor token_losses =
      tensor_over(losses_.data(), accumulation_of(model_.params.dtype()), {shape.tokens()});
  pass_stages(ex, prompts.micro, {.token_losses = token_losses});
  if (pipeline_.size() > 1) pipeline_.broadcast(ex, token_losses, pipeline_.size() - 1);
  std::vector<double> logprobs;
  if (device_.kind() == DeviceKind::Null) return logprobs;
  ex.stream.synchronize();
  const std::vector<double> losses = downloaded<double>(device_, token_losses);
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t i = 0; i + 1 < rows[row].tokens.size(); ++i)
      logprobs.push_back(-losses[row * static_cast<size_t>(shape.length) + i]);
  return logprobs;
}

void InferenceEngine::EngineRunner::issue(GraphCache<PromptShape>& graphs, const PromptShape& shape,
                                          FunctionRef<void()> work) {
  const bool can_capture =
      device_.supports_graphs() && !device_.is_autotuning() && model_.groups.world().size() == 1;
  if (can_capture) {
    graphs.run(shape, device_.compute_stream(), work);
  } else {
    work();
  }
}

void InferenceEngine::EngineRunner::decode(std::span<const EngineRow> rows, int64_t ahead) {
  const int64_t count = padded_rows(std::ssize(rows));
  std::vector<int32_t> positions(static_cast<size_t>(count)), lengths(static_cast<size_t>(count));
  std::vector<int32_t> pages(static_cast<size_t>(count * most_pages_));
  for (size_t row = 0; row < rows.size(); ++row) {
    lengths[row] = static_cast<int32_t>(std::ssize(rows[row].tokens) + ahead);
    positions[row] = lengths[row] - 1;
    std::copy(rows[row].pages.begin(), rows[row].pages.end(),
              pages.begin() + static_cast<ptrdiff_t>(row) * most_pages_);
  }
  tokens_.begin();
  const TextView micro{.sequences = count,
                       .length = 1,
                       .tokens = ids_of(count),
                       .targets = {},
                       .positions = tokens_.put<int32_t>(positions, {count}, "batch.positions"),
                       .weight = {},
                       .rows = {}};
  const ConstTensor length_of = tokens_.put<int32_t>(lengths, {count}, "batch.lengths");
  const ConstTensor pages_of = tokens_.put<int32_t>(pages, {count, most_pages_}, "batch.pages");
  const Choice choice = put_choice(tokens_, rows, count, ahead);
  if (has_encoder()) put_cached_sources(rows, count);
  Exec ex = exec();
  if (ahead == 0) {
    put_tokens(rows);
    put_seen(rows);
  }
  tokens_.send(ex.stream);
  attention_.begin_decode(length_of, pages_of);
  issue(token_graphs_, {count, 1}, [&] { choose(ex, micro, {}, count, choice); });
  send_result(std::ssize(rows));
}

std::span<const SampledToken> InferenceEngine::EngineRunner::collect() {
  BEV_CHECK(!issued_.empty(), Internal, "there is no step to collect");
  const Issued issued = issued_.front();
  issued_.pop_front();
  collected_rows_ = issued.rows;
  chosen_.assign(static_cast<size_t>(issued.rows), {});
  if (device_.kind() == DeviceKind::Null) return chosen_;
  device_.finish(issued.done);
  const std::byte* from = results_[issued.result].data();
  std::vector<double> logprobs(chosen_.size());
  const DType dtype = accumulation_of(model_.params.dtype());
  convert_elements({from, bytes_of(issued.rows, dtype)}, dtype,
                   std::as_writable_bytes(std::span(logprobs)), DType::f64);
  const auto* ids = reinterpret_cast<const int32_t*>(from + logprobs_.bytes());
  for (size_t row = 0; row < chosen_.size(); ++row) chosen_[row] = {ids[row], logprobs[row]};
  return chosen_;
}

std::vector<float> InferenceEngine::EngineRunner::logits() {
  BEV_CHECK(issued_.empty(), Internal, "logits while a step is on its way");
  const Tensor all = logits_of(collected_rows_);
  Exec ex = exec();
  if (pipeline_.size() > 1) pipeline_.broadcast(ex, all, pipeline_.size() - 1);
  ex.stream.synchronize();
  std::vector<float> padded = downloaded<float>(device_, all);
  std::vector<float> values;
  for (int64_t row = 0; row < collected_rows_; ++row)
    values.insert(values.end(), padded.begin() + row * classes_,
                  padded.begin() + row * classes_ + vocab());
  return values;
}

void InferenceEngine::EngineRunner::copy_page(int32_t from, int32_t to) {
  Exec ex = exec();
  cache_.copy_page(ex, from, to);
}

void InferenceEngine::EngineRunner::run_all_shapes() {
  const int64_t most = limits_.prompt();
  const std::vector<int32_t> ids(static_cast<size_t>(most));
  const std::vector<int32_t> pages(static_cast<size_t>(most_pages_));
  const auto pass = [&](std::span<const EngineRow> rows, const PromptShape& shape) {
    if (has_encoder()) return encode(rows, shape);
    prefill(rows, shape);
    collect();
    score(rows, shape);
  };
  // No step is larger than these, which none is like.
  if (device_.kind() == DeviceKind::Null) {
    pass({}, {limits_.rows, div_ceil(limits_.prefill_tokens, limits_.rows)});
    // A bias of relative positions grows with the square of the length.
    if (has_encoder()) pass({}, {div_ceil(limits_.prefill_tokens, most), most});
  }
  for (int64_t count = limits_.rows; count > 0; count /= 2) {
    int64_t length = most;
    while (length > 1 && !fits(count, length)) length = length * 3 / 4;
    // Nothing of it is kept: pages are absent.
    const std::span<const int32_t> text = std::span(ids).first(static_cast<size_t>(length));
    const EngineRow prompt{.tokens = text, .source = text, .source_length = length};
    if (fits(count, length))
      pass(std::vector<EngineRow>(static_cast<size_t>(count), prompt), padded(count, length));
    const EngineRow row{.tokens = std::span(ids).first(1),
                        .pages = std::span(pages).first(1),
                        .source = std::span(ids).first(has_encoder() ? 1 : 0)};
    decode(std::vector<EngineRow>(static_cast<size_t>(count), row), 0);
    collect();
  }
}

ArenaSizes InferenceEngine::EngineRunner::peaks() const {
  return {.keep = keep_.peak(),
          .batch = std::max(prompts_.peak(), tokens_.peak()),
          .scratch = scratch_.peak(),
          .recompute = recompute_.peak()};
}

}  // namespace bev
