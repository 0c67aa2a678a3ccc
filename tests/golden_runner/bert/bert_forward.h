// Hidden states and logits of a BERT for one micro-batch, layer by layer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/batch.h"
#include "pipeline/rank_model.h"

namespace bev::golden {

// [rows, columns] with the last rows of each sequence, its padding, left out.
using BertTensors = std::map<std::string, std::vector<double>>;

// By name: hidden_0 (input of the first block), hidden_1, ... (output of each block), final_norm
// (of a model with norms before attention and MLP), lm_logits of all tokens, and with a binary head
// pooled and binary_logits. REQUIRES: the model is on one rank, and every row of the batch is
// marked.
BertTensors bert_forward(RankModel& model, const HostBatch& batch);

// The rows of tokens before the padding, of [tokens, columns].
std::vector<double> without_padding(const std::vector<double>& values, const HostBatch& batch);

}  // namespace bev::golden
