#include "infer/encoder_pass.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/integer.h"
#include "checkpoint/safetensors.h"
#include "ops/cross_entropy.h"
#include "ops/matmul.h"
#include "pipeline/batch_uploader.h"
#include "pipeline/executor.h"

namespace bev {

namespace {

// Lengths of batches are multiples of it: a device that prepares itself for each length meets few.
constexpr int64_t kInputLengthStep = 16;

template <class T>
std::vector<T> read_back(Device& device, const ConstTensor& t) {
  std::vector<std::byte> bytes(static_cast<size_t>(t.shape.elements()) * size_of(t.dtype));
  device.download(t.data, bytes.data(), bytes.size());
  std::vector<T> values(static_cast<size_t>(t.shape.elements()));
  convert_elements(bytes, t.dtype, std::as_writable_bytes(std::span(values)), DTypeOf<T>::value);
  return values;
}

}  // namespace

struct EncoderPass::Batch {
  std::span<const EncoderInput> inputs;
  std::span<const size_t> members;  // indices into inputs
  int64_t marks = 0;                // marked rows of each sequence of `host`
  const HostBatch& host;

  // Calls f(input, mark, row) for each marked row that an input asked for.
  template <class F>
  void each_mark(int64_t begin, int64_t end, F&& f) const {
    for (int64_t row = begin; row < end; ++row) {
      const size_t input = members[static_cast<size_t>(row / marks)];
      const auto mark = static_cast<size_t>(row % marks);
      if (mark < inputs[input].marked.size()) f(input, mark, row);
    }
  }
};

// The device side. On the null device it counts the memory.
class EncoderPass::Runner {
 public:
  Runner(RankModel& model, const ArenaSizes& sizes)
      : model_(model),
        stage_(model.stages.front()),
        dtype_(model.params.dtype()),
        feed_(model.device, sizes.batch, 1),
        keep_(model.device, sizes.keep, "activations"),
        scratch_(model.device, sizes.scratch, "scratch"),
        recompute_(model.device, sizes.recompute, "recomputation"),
        env_{.borders = model.env.borders, .pass = {.training = false}} {
    for (const PartSpec& part : model.spec.parts)
      if (const auto* head = std::get_if<MaskedLmHeadSpec>(&part.is)) chunk_ = head->logits.chunk;
  }

  RankModel& model() { return model_; }

  bool is_biencoder() const { return !stage_.pair_heads().empty(); }
  // The towers of a bi-encoder may share one encoder.
  size_t encoder_of(int tower) const {
    return std::min(static_cast<size_t>(tower), stage_.embeddings().size() - 1);
  }

  // Hands the last hidden states [tokens, width] of an encoder to `use`.
  using Use = FunctionRef<void(Exec& ex, const TextView& micro, ConstTensor hidden)>;
  void run(const HostBatch& batch, Use use, size_t encoder = 0) {
    const TextView micro = feed_.upload(batch, 0)[0];
    const ArenaScope scope(keep_);
    Exec ex{model_.device, model_.device.compute_stream(), keep_, scratch_, recompute_};
    const Shape shape{micro.tokens_count(), model_.shape.width};
    const Tensor x = keep_.allocate(shape, dtype_, "encoder.x");
    {
      const ArenaScope saved(keep_);
      Embedding::Saved unused;
      stage_.embeddings()[encoder].forward(ex, env_, micro, x, unused);
    }
    const size_t blocks = stage_.blocks().size() / stage_.embeddings().size();
    for (size_t i = encoder * blocks; i < (encoder + 1) * blocks; ++i) {
      const ArenaScope saved(keep_);
      Block::Saved unused;
      stage_.blocks()[i].forward(ex, env_, {micro}, x, x, unused);
    }
    if (stage_.norms().empty()) return use(ex, micro, x);
    const Tensor normed = keep_.allocate(shape, dtype_, "encoder.normed");
    NormModule::Saved unused;
    stage_.norms()[encoder].forward(ex, x, normed, unused);
    use(ex, micro, normed);
  }

  // Hands the embeddings [sequences, embedding] by a tower of a bi-encoder to `use`.
  void embed(const HostBatch& batch, int tower, FunctionRef<void(Exec& ex, ConstTensor rows)> use) {
    const size_t encoder = encoder_of(tower);
    run(
        batch,
        [&](Exec& ex, const TextView& micro, ConstTensor hidden) {
          const ArenaScope scope(ex.scratch);
          use(ex, stage_.pair_heads().front().embed(ex, env_, encoder, micro, hidden).values);
        },
        encoder);
  }

  // Logits of marked rows [begin, begin + rows) over the first `columns` classes of this rank, in
  // scratch that is released when `use` returns.
  using UseChunk = FunctionRef<void(int64_t begin, ConstTensor logits)>;
  void each_chunk(Exec& ex, const TextView& micro, ConstTensor hidden, int64_t columns,
                  UseChunk use) {
    const ArenaScope scope(ex.scratch);
    const MaskedLmHead& head = stage_.masked_heads().front();
    const Tensor x = head.transform(ex, env_, micro.tokens_count(), hidden, micro.marked).normed;
    for (int64_t begin = 0; begin < x.rows(); begin += chunk_) {
      const ArenaScope chunk(ex.scratch);
      const int64_t rows = std::min(chunk_, x.rows() - begin);
      const Tensor logits = ex.scratch.allocate({rows, columns}, dtype_, "encoder.logits");
      ops::matmul(ex, {.a = slice(x, 0, begin, rows),
                       .b = slice(ConstTensor(head.weight().value), 0, 0, columns),
                       .tb = ops::Transpose::Yes,
                       .out = logits,
                       .epilogue = ops::Epilogue::Bias,
                       .bias = slice(ConstTensor(head.bias().value), 0, 0, columns)});
      use(begin, logits);
    }
  }

  int64_t classes() const { return stage_.masked_heads().front().weight().value.rows(); }
  int64_t first_class() const {
    return stage_.masked_heads().front().weight().pieces.front().logical.row;
  }
  const TensorRegion& region() const { return env_.borders.tensor; }

  // [ranks, rows, classes] of all tensor ranks.
  void each_logits(Exec& ex, const TextView& micro, ConstTensor hidden, UseChunk use) {
    each_chunk(ex, micro, hidden, classes(), [&](int64_t begin, ConstTensor logits) {
      use(begin, region().vocab_is_sharded() ? region().all_gather_parts(ex, logits) : logits);
    });
  }

  // [rows, ops::kSoftmaxStats] over the vocabulary without its padding.
  void each_stats(Exec& ex, const TextView& micro, ConstTensor hidden, UseChunk use) {
    const int64_t columns = std::min(classes(), model_.shape.vocab - first_class());
    each_chunk(ex, micro, hidden, columns, [&](int64_t begin, ConstTensor logits) {
      const Tensor stats = ex.scratch.allocate({logits.rows(), ops::kSoftmaxStats},
                                               accumulation_of(dtype_), "encoder.stats");
      ops::softmax_stats(ex, {.logits = logits,
                              .targets = slice(micro.targets, 0, begin, logits.rows()),
                              .column_begin = first_class(),
                              .stats = stats});
      if (region().vocab_is_sharded())
        ops::merge_softmax_stats(ex,
                                 {.parts = region().all_gather_parts(ex, stats), .stats = stats});
      use(begin, stats);
    });
  }

  ArenaSizes peaks() const {
    return {.keep = keep_.peak(),
            .batch = feed_.peak(),
            .scratch = scratch_.peak(),
            .recompute = recompute_.peak()};
  }

 private:
  RankModel& model_;
  const Stage& stage_;
  DType dtype_;
  int64_t chunk_ = 0;  // marked rows whose logits exist at the same time
  BatchUploader feed_;
  Arena keep_, scratch_, recompute_;
  ModelEnv env_;
};

namespace {

// A batch in which all tokens are marked takes the most memory.
HostBatch largest_batch(const Config& config) {
  HostBatch batch;
  const int64_t length = config.train.sequence;
  batch.resize(config.train.micro_batch, masked_batch(length, length));
  return batch;
}

}  // namespace

EncoderPass::EncoderPass(LoadedModel& model) : model_(model) {
  const Config& config = model.config();
  BEV_CHECK(config.parallel.pipeline == 1, Usage,
            "--pipeline {}: an encoder runs on tensor ranks only; use --pipeline 1, --tensor N",
            config.parallel.pipeline);
  require_ids_on_every_rank(config);
  DryRunModel dry_run(config, model.world().rank());
  Runner planned(dry_run.model, {});
  if (planned.is_biencoder()) {
    planned.embed(largest_batch(config), kContextText, [](Exec&, ConstTensor) {});
  } else {
    planned.run(largest_batch(config), [&](Exec& ex, const TextView& micro, ConstTensor hidden) {
      planned.each_logits(ex, micro, hidden, [](int64_t, ConstTensor) {});
      planned.each_stats(ex, micro, hidden, [](int64_t, ConstTensor) {});
    });
  }
  runner_ = std::make_unique<Runner>(model.placed(), planned.peaks());
}

EncoderPass::~EncoderPass() = default;

int64_t EncoderPass::width() const { return runner_->model().shape.width; }

bool EncoderPass::is_biencoder() const { return runner_->is_biencoder(); }

int64_t EncoderPass::embedding_width() const {
  return bev::embedding_width(runner_->model().config.model);
}

namespace {

void check_input(const EncoderInput& input, const Config& config) {
  BEV_CHECK(!input.ids.empty() && std::ssize(input.ids) <= config.train.sequence, Internal,
            "a text of {} tokens, batches of {}", input.ids.size(), config.train.sequence);
  for (const int32_t id : input.ids)
    BEV_CHECK(id >= 0 && id < config.model.vocab, Data,
              "the text has the id {}, but the vocabulary of the model has {} ids; its own "
              "tokenizer is needed",
              id, config.model.vocab);
}

// Marked rows beyond those of an input repeat its first token, without weight.
void put_input(const EncoderInput& input, int64_t at, int64_t marks, HostBatch& batch) {
  const int64_t begin = at * batch.length;
  for (int64_t i = 0; i < batch.length; ++i) {
    const auto to = static_cast<size_t>(begin + i), from = static_cast<size_t>(i);
    batch.tokens[to] = from < input.ids.size() ? input.ids[from] : 0;
    batch.positions[to] = static_cast<int32_t>(i);
    batch.rows[to] = static_cast<int64_t>(to);
    batch.types[to] = 0;
  }
  for (int64_t mark = 0; mark < marks; ++mark) {
    const auto to = static_cast<size_t>(at * marks + mark), from = static_cast<size_t>(mark);
    const bool is_used = from < input.marked.size();
    batch.marked[to] = static_cast<int32_t>(begin + (is_used ? input.marked[from] : 0));
    batch.targets[to] = from < input.targets.size() ? input.targets[from] : 0;
    batch.weight[to] = is_used ? 1.0f : 0.0f;
  }
  const auto sequence = static_cast<size_t>(at);
  batch.lengths[sequence] = static_cast<int32_t>(input.ids.size());
  batch.pooled[sequence] = static_cast<int32_t>(begin);
  batch.label[sequence] = 0;
  batch.label_weight[sequence] = 0;
}

}  // namespace

void EncoderPass::run(std::span<const EncoderInput> inputs, OnDone on_done,
                      FunctionRef<void(const Batch& batch)> work) {
  const Config& config = model_.config();
  for (const EncoderInput& input : inputs) check_input(input, config);
  std::vector<size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return inputs[a].ids.size() > inputs[b].ids.size(); });
  const auto sequences = static_cast<size_t>(config.train.micro_batch);
  HostBatch host;
  for (size_t begin = 0; begin < order.size(); begin += sequences) {
    const auto members =
        std::span<const size_t>(order).subspan(begin, std::min(sequences, order.size() - begin));
    const auto longest = std::ssize(inputs[members.front()].ids);
    int64_t marks = 1;
    for (const size_t member : members) marks = std::max(marks, std::ssize(inputs[member].marked));
    host.resize(
        std::ssize(members),
        masked_batch(std::min(config.train.sequence, round_up(longest, kInputLengthStep)), marks));
    for (size_t at = 0; at < members.size(); ++at)
      put_input(inputs[members[at]], static_cast<int64_t>(at), marks, host);
    work({.inputs = inputs, .members = members, .marks = marks, .host = host});
    on_done(static_cast<int64_t>(begin + members.size()));
  }
}

void EncoderPass::hidden(std::span<const EncoderInput> inputs, HiddenSink sink, OnDone on_done) {
  run(inputs, on_done, [&](const Batch& batch) {
    runner_->run(batch.host, [&](Exec& ex, const TextView&, ConstTensor hidden) {
      const std::vector<float> values = read_back<float>(ex.device, hidden);
      const auto columns = static_cast<size_t>(width());
      for (size_t at = 0; at < batch.members.size(); ++at) {
        const size_t input = batch.members[at];
        const size_t begin = at * static_cast<size_t>(batch.host.length) * columns;
        sink(input, std::span(values).subspan(begin, inputs[input].ids.size() * columns));
      }
    });
  });
}

void EncoderPass::embeddings(std::span<const EncoderInput> inputs, int tower, EmbeddingSink sink,
                             OnDone on_done) {
  run(inputs, on_done, [&](const Batch& batch) {
    runner_->embed(batch.host, tower, [&](Exec& ex, ConstTensor rows) {
      const std::vector<float> values = read_back<float>(ex.device, rows);
      const auto columns = static_cast<size_t>(embedding_width());
      for (size_t at = 0; at < batch.members.size(); ++at)
        sink(batch.members[at], std::span(values).subspan(at * columns, columns));
    });
  });
}

void EncoderPass::logits(std::span<const EncoderInput> inputs, LogitSink sink, OnDone on_done) {
  const auto vocab = static_cast<size_t>(model_.vocab());
  const auto classes = static_cast<size_t>(runner_->classes());
  std::vector<double> row_logits(vocab);
  run(inputs, on_done, [&](const Batch& batch) {
    runner_->run(batch.host, [&](Exec& ex, const TextView& micro, ConstTensor hidden) {
      runner_->each_logits(ex, micro, hidden, [&](int64_t begin, ConstTensor parts) {
        const std::vector<double> values = read_back<double>(ex.device, parts);
        const size_t rows =
            values.size() / classes / static_cast<size_t>(model_.config().parallel.tensor);
        batch.each_mark(
            begin, begin + static_cast<int64_t>(rows), [&](size_t input, size_t mark, int64_t row) {
              for (size_t id = 0; id < vocab; ++id)
                row_logits[id] =
                    values[((id / classes) * rows + static_cast<size_t>(row - begin)) * classes +
                           id % classes];
              sink(input, mark, row_logits);
            });
      });
    });
  });
}

void EncoderPass::losses(std::span<const EncoderInput> inputs, LossSink sink, OnDone on_done) {
  run(inputs, on_done, [&](const Batch& batch) {
    runner_->run(batch.host, [&](Exec& ex, const TextView& micro, ConstTensor hidden) {
      runner_->each_stats(ex, micro, hidden, [&](int64_t begin, ConstTensor stats) {
        const std::vector<double> values = read_back<double>(ex.device, stats);
        batch.each_mark(begin, begin + stats.rows(), [&](size_t input, size_t mark, int64_t row) {
          const double* of = values.data() + static_cast<size_t>(row - begin) * ops::kSoftmaxStats;
          sink(input, mark,
               of[ops::kStatMax] - of[ops::kStatTarget] + std::log(of[ops::kStatSumExp]));
        });
      });
    });
  });
}

}  // namespace bev
