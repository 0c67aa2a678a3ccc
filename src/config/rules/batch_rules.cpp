// Rules about batches, sequences and the training length.
#include <algorithm>

#include "base/format.h"
#include "config/data_split.h"
#include "config/rules/rule.h"
#include "text/tokenizer.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found sequence_given(const RuleInput& f) {
  if (f.config.train.sequence > 0) return {};
  return Problem{.what = "train.sequence is missing",
                 .where = "neither the file, nor the command line, nor a preset sets it",
                 .why = "the number of tokens of one sequence has no default",
                 .legal = "--train.sequence 1024"};
}

Found micro_batch_given(const RuleInput& f) {
  if (f.config.train.micro_batch > 0) return {};
  return Problem{.what = "train.micro_batch is missing",
                 .where = "neither the file nor the command line sets it",
                 .why =
                     "the number of sequences computed at a time has no default: it decides how "
                     "much memory is needed",
                 .legal = "--train.micro_batch 1, then more while the memory lasts"};
}

Found sequence_has_positions(const RuleInput& f) {
  const int64_t positions = f.config.model.positions;
  const PositionKind kind = f.config.model.position;
  if (kind == PositionKind::None || kind == PositionKind::Relative || positions == 0) return {};
  const bool is_t5 = f.config.model.family == ModelFamily::T5;
  for (const auto& [path, sequence] :
       {std::pair{"train.sequence", f.config.train.sequence},
        std::pair{"train.decoder_sequence", is_t5 ? f.config.train.decoder_sequence : 0}}) {
    if (sequence <= positions) continue;
    return Problem{.what = format("a sequence of {} tokens is longer than the model's {} positions",
                                  sequence, positions),
                   .where = f.where({path, "model.positions"}),
                   .why = format("tokens {} to {} would have no position", positions + 1, sequence),
                   .legal = format("{} at most {}, or model.positions at least {}", path, positions,
                                   sequence)};
  }
  return {};
}

// 0: not known, another rule says why.
int64_t sharing_ranks(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  const int64_t one = p.tensor * p.context * p.pipeline;
  return p.ranks % one == 0 ? p.ranks / one : 0;
}

Found global_batch_divides(const RuleInput& f) {
  const int64_t global = f.config.train.global_batch, ranks = sharing_ranks(f);
  const int64_t micro = f.config.train.micro_batch * ranks;
  if (global == 0 || micro <= 0 || global % micro == 0) return {};
  if (ranks > 1)
    return Problem{
        .what = format("global batch {} is not a multiple of micro-batch {} on {} ranks", global,
                       f.config.train.micro_batch, ranks),
        .where = f.where({"train.global_batch", "train.micro_batch", "parallel.ranks"}),
        .why = format("a step is a whole number of micro-batches on each of {} data-parallel "
                      "ranks, and {} / {} leaves {}",
                      ranks, global, micro, global % micro),
        .legal = format("global_batch {}", multiples_near(global, micro))};
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

Found ramp_reaches_the_batch(const RuleInput& f) {
  const TrainConfig& t = f.config.train;
  const int64_t together = t.micro_batch * sharing_ranks(f);
  const int64_t global = t.global_batch > 0 ? t.global_batch : together;
  if (t.ramp_start == 0 || together <= 0) return {};
  const auto refuse = [&](std::string why) {
    return Problem{.what = "the batch does not grow to its full size",
                   .where = f.where({"train.ramp_start", "train.ramp_increment",
                                     "train.global_batch", "train.micro_batch"}),
                   .why = std::move(why),
                   .legal =
                       "a start below the global batch and an increment that divides the "
                       "difference, both multiples of the micro-batch"};
  };
  if (t.ramp_start > global)
    return refuse(format("it starts with {}, above {}", t.ramp_start, global));
  if (t.ramp_increment <= 0 || (global - t.ramp_start) % t.ramp_increment != 0)
    return refuse(
        format("steps of {} do not lead from {} to {}", t.ramp_increment, t.ramp_start, global));
  if (t.ramp_start % together != 0 || t.ramp_increment % together != 0)
    return refuse(
        format("a step is a whole number of micro-batches of {} on all ranks together", together));
  return {};
}

Found ramp_needs_samples(const RuleInput& f) {
  const TrainConfig& t = f.config.train;
  if (t.ramp_start == 0 || t.iterations == 0) return {};
  return Problem{.what = "a growing batch needs the training length in samples",
                 .where = f.where({"train.ramp_start", "train.iterations"}),
                 .why = "iterations of different size are no length",
                 .legal = "train.samples instead of train.iterations"};
}

Found length_given(const RuleInput& f) {
  const TrainConfig& t = f.config.train;
  if (f.purpose != Purpose::Train || t.iterations > 0 || t.samples > 0) return {};
  return Problem{
      .what = "the training length is missing",
      .where = f.where({"train.iterations", "train.samples"}),
      .why = "nothing says how long to train",
      .legal = "train.iterations (optimizer steps) or train.samples (sequences), above 0"};
}

Found one_length(const RuleInput& f) {
  const TrainConfig& t = f.config.train;
  if (t.iterations == 0 || t.samples == 0) return {};
  return Problem{.what = "the training length is given twice",
                 .where = f.where({"train.iterations", "train.samples"}),
                 .why = "iterations and samples may contradict each other",
                 .legal = "one of the two; the other 0 or left out"};
}

Found samples_make_a_step(const RuleInput& f) {
  const TrainConfig& t = f.config.train;
  const int64_t batch = t.global_batch > 0 ? t.global_batch : t.micro_batch * sharing_ranks(f);
  if (t.samples == 0 || batch <= 0 || t.samples >= batch) return {};
  return Problem{
      .what = format("{} samples are less than one step", t.samples),
      .where = f.where({"train.samples", "train.global_batch", "train.micro_batch"}),
      .why = format("one step takes {} samples", batch),
      .legal = format("samples at least {}, or a global batch of at most {}", batch, t.samples)};
}

// Counters of samples and tokens are 64 bits; activations are counted in bytes.
Found counts_fit(const RuleInput& f) {
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

Found micro_batch_fits(const RuleInput& f) {
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

Found data_given(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  if (f.purpose != Purpose::Train || d.mock || !d.path.empty() || !d.train_path.empty()) return {};
  return Problem{.what = "there is nothing to train on",
                 .where = f.where({"data.path", "data.train_path", "data.mock"}),
                 .why = "neither token files nor made-up tokens are given",
                 .legal =
                     "--data.path PREFIX, where PREFIX.bin and PREFIX.idx exist (`bevatron "
                     "preprocess` makes them), or --mock-data"};
}

Found one_source(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  const int sources = (d.mock ? 1 : 0) + (d.path.empty() ? 0 : 1) +
                      (d.train_path.empty() && d.valid_path.empty() && d.test_path.empty() ? 0 : 1);
  if (sources <= 1) return {};
  return Problem{.what = "the data is given twice",
                 .where = f.where({"data.mock", "data.path", "data.train_path", "data.valid_path",
                                   "data.test_path"}),
                 .why =
                     "made-up tokens, a file that is divided and a file for each part exclude "
                     "each other",
                 .legal = "one of the three"};
}

// The configuration of a finished run has a split, needed or not; a flag is meant.
Found split_has_a_path(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  const auto split = f.origins.find("data.split");
  const bool is_meant = split != f.origins.end() && split->second.kind == OriginKind::Flag;
  const bool has_parts = !d.train_path.empty() || !d.valid_path.empty() || !d.test_path.empty();
  if (!is_meant || !has_parts || !d.path.empty()) return {};
  return Problem{
      .what = "data.split cannot be used together with a file for each part",
      .where = f.where({"data.split", "data.train_path", "data.valid_path", "data.test_path"}),
      .why = "it divides the files of data.path, and none are given",
      .legal =
          "--data-path PREFIX with --split, or --train-data-path, --valid-data-path and "
          "--test-data-path without it"};
}

Found split_is_weights(const RuleInput& f) {
  if (f.config.data.path.empty() || parse_split(f.config.data.split)) return {};
  return Problem{.what = "data.split is not a list of weights",
                 .where = f.where({"data.split"}),
                 .why = "it divides the sequences into training, validation and test",
                 .legal = "up to three numbers of at least 0, not all 0, such as 969,30,1"};
}

Found eod_known(const RuleInput& f) {
  const DataConfig& d = f.config.data;
  if (d.eod >= 0 || (!d.mask_eod && !d.reset_positions && !d.reset_attention)) return {};
  return Problem{.what = "the id that ends a document is not known",
                 .where = f.where({"data.tokenizer", "data.eod"}),
                 .why = "mask_eod, reset_positions and reset_attention look for it",
                 .legal = "--data.eod ID, or a tokenizer that has one"};
}

Found eod_in_vocabulary(const RuleInput& f) {
  const int64_t eod = f.config.data.eod, vocab = f.config.model.vocab;
  const bool is_reported_below =
      f.config.data.tokenizer == TokenizerKind::Byte && vocab < kByteVocab;
  if (vocab <= 0 || eod < vocab || is_reported_below) return {};
  return Problem{.what = format("the id {} that ends a document is not in the vocabulary", eod),
                 .where = f.where({"data.eod", "model.vocab"}),
                 .why = format("the model has no row for it: ids go from 0 to {}", vocab - 1),
                 .legal = format("data.eod below {}, or model.vocab above {}", vocab, eod)};
}

Found vocab_of_tokenizer(const RuleInput& f) {
  if (f.config.data.tokenizer != TokenizerKind::Byte || f.config.model.vocab >= kByteVocab)
    return {};
  return Problem{.what = format("a vocabulary of {} is too small for bytes", f.config.model.vocab),
                 .where = f.where({"model.vocab", "data.tokenizer"}),
                 .why = "there are 256 bytes, and 256 ends a document",
                 .legal = "model.vocab 257, or left out"};
}

}  // namespace

std::vector<Rule> batch_rules() {
  return {
      {{"train.sequence"}, sequence_given, true},
      {{"train.micro_batch"}, micro_batch_given, true},
      {{"train.sequence", "train.decoder_sequence", "model.positions", "model.position",
        "model.family"},
       sequence_has_positions},
      {{"train.global_batch", "train.micro_batch", "parallel.ranks", "parallel.tensor",
        "parallel.pipeline"},
       global_batch_divides},
      {{"train.ramp_start", "train.ramp_increment", "train.global_batch", "train.micro_batch",
        "parallel.ranks", "parallel.tensor", "parallel.pipeline"},
       ramp_reaches_the_batch},
      {{"train.ramp_start", "train.iterations"}, ramp_needs_samples},
      {{"train.iterations", "train.samples"}, length_given, true},
      {{"train.iterations", "train.samples"}, one_length},
      {{"train.samples", "train.global_batch", "train.micro_batch", "parallel.ranks",
        "parallel.tensor", "parallel.pipeline"},
       samples_make_a_step},
      {{"train.iterations", "train.samples", "train.global_batch", "train.micro_batch",
        "train.sequence"},
       counts_fit},
      {{"train.micro_batch", "train.sequence"}, micro_batch_fits},
      {{"data.mock", "data.path", "data.train_path"}, data_given, true},
      {{"data.mock", "data.path", "data.train_path", "data.valid_path", "data.test_path"},
       one_source},
      {{"data.path", "data.split", "data.train_path", "data.valid_path", "data.test_path"},
       split_has_a_path},
      {{"data.path", "data.split"}, split_is_weights},
      {{"data.tokenizer", "data.eod", "data.mask_eod", "data.reset_positions",
        "data.reset_attention"},
       eod_known},
      {{"data.eod", "model.vocab", "data.tokenizer"}, eod_in_vocabulary},
      {{"model.vocab", "data.tokenizer"}, vocab_of_tokenizer},
  };
}

}  // namespace bev
