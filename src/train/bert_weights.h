// The weights of a BERT with which the encoders of a bi-encoder begin.
#pragma once

#include "checkpoint/checkpoint_reader.h"
#include "config/config.h"
#include "train/training_state.h"

namespace bev {

// The newest checkpoint in checkpoint.bert. Data error: there is none. Usage error: it is none of a
// BERT of the encoders' shape.
CheckpointReader open_bert(const Config& config);

// Overwrites the weights of all encoders; projections keep theirs.
void load_bert(const CheckpointReader& bert, TrainingState& state);

}  // namespace bev
