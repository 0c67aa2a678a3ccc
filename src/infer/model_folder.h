// Where a trained model is stored.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "convert/huggingface/huggingface_config.h"

namespace bev {

// What a folder says about its model: a folder of a run (config.toml, model/), one in Hugging
// Face's format (config.json, *.safetensors), or checkpoints of ours: one, a folder of them, or a
// run without model/, whose checkpoints may lie elsewhere (checkpoint.save). The newest good
// checkpoint is used.
struct ModelFolder {
  std::filesystem::path weights;  // the folder with config.json, or the checkpoint
  Config config;                  // the model as stored; the rest as trained, else defaults
  bool is_run = false;            // the configuration is that of a training
  bool is_checkpoint = false;
  bool is_fresh = false;     // no folder is named: initial weights, as at the start of a training
                             // run
  bool has_lm_head = true;   // false: a BertModel of Hugging Face, an encoder alone
  DecoderIds decoder_ids{};  // of a T5
  std::string tokenizer_problem{};         // why the tokenizer beside the model cannot be used
  std::vector<std::string> passed_over{};  // why newer checkpoints are not used, a sentence each

  bool is_bert() const { return config.model.family == ModelFamily::Bert; }
  bool is_biencoder() const { return config.model.family == ModelFamily::Biencoder; }
  bool is_t5() const { return config.model.family == ModelFamily::T5; }
};
// For messages: why there is no tokenizer for the model.
std::string why_no_tokenizer(const ModelFolder& folder);

// Data error when it is none of these.
ModelFolder open_model_folder(const std::filesystem::path& dir);

// Usage errors: the model is neither a GPT nor a T5, or is no GPT, which `verb` cannot use; the
// model predicts no words.
void require_generative(const ModelFolder& folder, std::string_view verb);
void require_causal(const ModelFolder& folder, std::string_view verb);
void require_lm_head(const ModelFolder& folder);

// The longest sequence a model can be given; `wanted` if it has no bound.
int64_t longest_sequence(const ModelFolder& folder, int64_t wanted);

}  // namespace bev
