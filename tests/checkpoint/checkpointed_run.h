// Trainings that save and continue, under any layout, on ranks that are threads: what `bevatron
// train` does, without its words.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "config/config.h"
#include "train/train_loop.h"

namespace bev::test {

// Four layers and four heads, so that every axis can be cut in four; with dropout, on the reference
// device. The vocabulary is odd: what it is padded to depends on the layout.
Config divisible_gpt();
Config divisible_llama();
// A post-norm BERT with LAMB on a file of sentences, of which a run reads several epochs; writes
// the file into the folder.
Config sentence_bert(const std::filesystem::path& folder, SampleOrder order);
// The same of a T5 and a bi-encoder with Adam.
Config sentence_t5(const std::filesystem::path& folder, SampleOrder order);
Config sentence_biencoder(const std::filesystem::path& folder, SampleOrder order);

struct RunOutcome {
  TrainSummary summary;
  std::vector<Progress> iterations;  // with those that were done again
  std::vector<GuardEvent> events;
  std::vector<std::string> save_failures;  // of the first rank
};

// Called on each rank after each iteration.
using Disturbance =
    std::function<void(int rank, const Progress& progress, TrainingState& assembly)>;

// Runs the iterations of the configuration that are left, from checkpoint.load where it is given,
// and saves as it says. Throws what the ranks throw. `samples`: absent: those that the
// configuration names, or UnevenDataset with data.mock.
RunOutcome run_checkpointed(const Config& config, std::shared_ptr<const Dataset> samples = {},
                            const Disturbance& disturb = {});

// The same configuration under another layout: "tp2.dp2.zero1".
Config under(Config config, const std::string& layout);

// Up to iteration `until` and saved into `folder`; continued from the folder to the end, saving
// there.
Config first_part(Config config, const std::filesystem::path& folder, int64_t until);
Config second_part(Config config, const std::filesystem::path& folder);

// The checkpoint of an iteration.
std::filesystem::path place_of(const std::filesystem::path& folder, int64_t iteration);

// The worst difference of two checkpoints: the norm of the difference of a tensor over its norm.
// Rows behind `vocab` tokens, and the bias of keys where softmax cancels it, mean nothing.
struct Worst {
  double difference = 0;
  std::string tensor{};
};
Worst worst_difference(const CheckpointReader& a, const CheckpointReader& b, const Config& config);

}  // namespace bev::test
