// Rules about batches, sequences and the training length.
#include <algorithm>

#include "base/format.h"
#include "config/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found sequence_given(const Facts& f) {
  if (f.config.train.sequence > 0) return {};
  return Problem{.what = "train.sequence is missing",
                 .where = "neither the file, nor the command line, nor a preset sets it",
                 .why = "the number of tokens of one sequence has no default",
                 .legal = "--train.sequence 1024"};
}

Found micro_batch_given(const Facts& f) {
  if (f.config.train.micro_batch > 0) return {};
  return Problem{.what = "train.micro_batch is missing",
                 .where = "neither the file nor the command line sets it",
                 .why =
                     "the number of sequences computed at a time has no default: it decides how "
                     "much memory is needed",
                 .legal = "--train.micro_batch 1, then more while the memory lasts"};
}

Found sequence_has_positions(const Facts& f) {
  const int64_t sequence = f.config.train.sequence, positions = f.config.model.positions;
  if (f.config.model.position == PositionKind::None || positions == 0 || sequence <= positions)
    return {};
  return Problem{.what = format("a sequence of {} tokens is longer than the model's {} positions",
                                sequence, positions),
                 .where = f.where({"train.sequence", "model.positions"}),
                 .why = format("tokens {} to {} would have no position", positions + 1, sequence),
                 .legal = format("train.sequence at most {}, or model.positions at least {}",
                                 positions, sequence)};
}

Found global_batch_divides(const Facts& f) {
  const int64_t global = f.config.train.global_batch, micro = f.config.train.micro_batch;
  if (global == 0 || micro <= 0 || global % micro == 0) return {};
  return Problem{
      .what = format("global batch {} is not a multiple of micro-batch {}", global, micro),
      .where = f.where({"train.global_batch", "train.micro_batch"}),
      .why =
          format("a step is a whole number of micro-batches on 1 data-parallel rank, and {} / {} "
                 "leaves {}",
                 global, micro, global % micro),
      .legal = format("global_batch {}; or micro_batch {}", multiples_near(global, micro),
                      divisors_near(global, micro))};
}

Found length_given(const Facts& f) {
  const TrainConfig& t = f.config.train;
  if (f.purpose != Purpose::Train || t.iterations > 0 || t.samples > 0) return {};
  return Problem{
      .what = "the training length is missing",
      .where = f.where({"train.iterations", "train.samples"}),
      .why = "nothing says how long to train",
      .legal = "train.iterations (optimizer steps) or train.samples (sequences), above 0"};
}

Found one_length(const Facts& f) {
  const TrainConfig& t = f.config.train;
  if (t.iterations == 0 || t.samples == 0) return {};
  return Problem{.what = "the training length is given twice",
                 .where = f.where({"train.iterations", "train.samples"}),
                 .why = "iterations and samples may contradict each other",
                 .legal = "one of the two; the other 0 or left out"};
}

Found samples_make_a_step(const Facts& f) {
  const TrainConfig& t = f.config.train;
  const int64_t batch = t.global_batch > 0 ? t.global_batch : t.micro_batch;
  if (t.samples == 0 || batch <= 0 || t.samples >= batch) return {};
  return Problem{
      .what = format("{} samples are less than one step", t.samples),
      .where = f.where({"train.samples", "train.global_batch", "train.micro_batch"}),
      .why = format("one step takes {} samples", batch),
      .legal = format("samples at least {}, or a global batch of at most {}", batch, t.samples)};
}

// Counters of samples and tokens are 64 bits; activations are counted in bytes.
Found counts_fit(const Facts& f) {
  const TrainConfig& t = f.config.train;
  const double batch = static_cast<double>(std::max(t.global_batch, t.micro_batch));
  const double sequence = static_cast<double>(t.sequence);
  const double samples =
      std::max(static_cast<double>(t.iterations) * batch, static_cast<double>(t.samples));
  constexpr double kMost = 4e18;
  if (samples * sequence <= kMost) return {};
  return Problem{.what = "the training has more tokens than can be counted",
                 .where = f.where(
                     {"train.iterations", "train.samples", "train.global_batch", "train.sequence"}),
                 .why = format("{:.3g} sequences of {:.3g} tokens", samples, sequence),
                 .legal = format("at most {:.0e} tokens", kMost)};
}

Found micro_batch_fits(const Facts& f) {
  const double tokens = static_cast<double>(f.config.train.micro_batch) *
                        static_cast<double>(f.config.train.sequence);
  constexpr double kMost = 0x1p31 - 1;
  if (tokens <= kMost) return {};
  return Problem{.what = "a micro-batch has too many tokens",
                 .where = f.where({"train.micro_batch", "train.sequence"}),
                 .why = format("{} sequences of {} tokens are {:.4g} tokens",
                               f.config.train.micro_batch, f.config.train.sequence, tokens),
                 .legal = format("at most {:.0f} tokens", kMost)};
}

Found data_given(const Facts& f) {
  if (f.purpose != Purpose::Train || f.config.data.mock) return {};
  return Problem{.what = "there is nothing to train on",
                 .where = f.where({"data.mock"}),
                 .why = "this version has no data files, only made-up tokens",
                 .legal = "--data.mock (Megatron: --mock-data)"};
}

}  // namespace

std::vector<Rule> batch_rules() {
  return {
      {{"train.sequence"}, sequence_given, true},
      {{"train.micro_batch"}, micro_batch_given, true},
      {{"train.sequence", "model.positions", "model.position"}, sequence_has_positions},
      {{"train.global_batch", "train.micro_batch"}, global_batch_divides},
      {{"train.iterations", "train.samples"}, length_given, true},
      {{"train.iterations", "train.samples"}, one_length},
      {{"train.samples", "train.global_batch", "train.micro_batch"}, samples_make_a_step},
      {{"train.iterations", "train.samples", "train.global_batch", "train.micro_batch",
        "train.sequence"},
       counts_fit},
      {{"train.micro_batch", "train.sequence"}, micro_batch_fits},
      {{"data.mock"}, data_given, true},
  };
}

}  // namespace bev
