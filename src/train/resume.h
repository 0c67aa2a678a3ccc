// How a run continues from a checkpoint: which one, with what configuration, and from where.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "train/train_loop.h"
#include "train/training_state.h"

namespace bev {

struct ResumePoints {
  std::vector<CheckpointPlace> places;  // newest first, which has a good manifest and headers
  std::vector<std::string> alerts;      // about newer ones that cannot be used, one line each
  int64_t padded_vocab = 0;             // of the newest; 0: there is none
};

// The checkpoints that checkpoint.load and checkpoint.step mean; none where nothing is there yet.
// Data error: none of those that are there can be used, or what must exist does not.
ResumePoints find_resume_points(const CheckpointConfig& config);

// Padded rows of the vocabulary are part of the model's softmax: the curve of another layout is the
// same only with the same padding. The configuration with the padding of the newest point, where
// its tensor ranks can divide it.
Config with_padding_of(const ResumePoints& points, Config config);

// A configuration that continues from a checkpoint.
struct ResumePlan {
  Config config;  // for TrainingState: with the seed that draws continue with
  TrainStart start;
  bool with_optimizer = true;
  std::string differences{};           // for people: what this run does otherwise; lines
  std::vector<std::string> changes{};  // the same for the history
};

// Usage error where the configuration cannot go on from there, with all reasons.
ResumePlan continue_from(const Manifest& manifest, const Config& config, const std::string& source);

// Fills what a rank holds. Data error where the checkpoint is damaged.
void restore(const CheckpointReader& stored, const ResumePlan& continuation, TrainingState& state);

// What a run that starts after `iteration` must not find in its folder: checkpoints of later
// iterations, of another course of the training. Those of the folder the run continues from are
// moved into its folder set-aside, and a line about them is returned; empty: there was none.
std::string set_aside_later_checkpoints(const CheckpointFolder& folder, int64_t iteration);

// Whether the run goes on with what is in its own folder for checkpoints, or will be there.
bool continues_itself(const Config& config);

// Whether the run goes on with the log of the folder it writes to.
bool continues_output(const Config& config);

}  // namespace bev
