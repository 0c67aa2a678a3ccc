// States of a T5's layers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/batch.h"
#include "pipeline/rank_model.h"

namespace bev::golden {

// For one micro-batch: encoder_hidden_0 (input of the first block), encoder_hidden_1, ... (output
// of each block), encoder_final_norm, the same for the decoder, encoder_position_bias and
// decoder_position_bias, and lm_logits. Rows of padding are left out. REQUIRES: the model is on one
// rank.
std::map<std::string, std::vector<double>> t5_forward(RankModel& model, const HostBatch& batch);

// The rows of tokens before the padding, of [tokens, columns].
std::vector<double> without_padding(const std::vector<double>& values, const HostText& text);

// All elements of a tensor on a device.
std::vector<double> values_on(Device& device, const ConstTensor& t);

}  // namespace bev::golden
