#include "infer/model_folder.h"

#include "base/check.h"
#include "base/format.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_survey.h"
#include "config/parse/load.h"
#include "config/resolve.h"
#include "config/tokenizer_config.h"
#include "convert/huggingface/huggingface.h"
#include "text/tokenizer_files.h"
#include "train/run_directory.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

void name_tokenizer(const TokenizerSpec& spec, DataConfig& data) {
  data.tokenizer = spec.kind;
  data.vocab_file = spec.vocab_file;
  data.merge_file = spec.merge_file;
  data.tokenizer_model = spec.model;
  data.vocab_extra_ids = spec.extra_ids;
}

// Uses the tokenizer whose files lie in the folder, where they do.
void find_tokenizer(const fs::path& dir, ModelFolder& folder) {
  if (!holds_vocabulary(dir)) return;
  try {
    const TokenizerSpec spec = detect_tokenizer(dir.string());
    folder.config.data.eod = open_tokenizer(spec)->eod_id().value_or(-1);
    name_tokenizer(spec, folder.config.data);
  } catch (const Error& error) {
    // The model can be used without: with ids instead of text.
    folder.tokenizer_problem = error.what();
  }
}

// The files may have moved since the training; those beside the model are a copy.
void use_tokenizer_in_folder(ModelFolder& folder) {
  name_tokenizer(tokenizer_in_folder(tokenizer_spec(folder.config), folder.weights),
                 folder.config.data);
}

// checkpoint.save of the run in `dir`; empty: not set, or `dir` has no config.toml.
fs::path save_folder_of_run(const fs::path& dir) {
  const fs::path file = RunDirectory(dir).config_file();
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return {};
  Findings unused;
  const std::vector<std::string> args{file.string()};
  return load_unchecked(args, {}, Purpose::Plan, unused).config.checkpoint.save;
}

void open_as_huggingface(const fs::path& dir, const fs::path& save, ModelFolder& folder) {
  folder.is_run = RunDirectory::is_run(dir);
  folder.weights = folder.is_run ? RunDirectory(dir).model() : dir;
  std::error_code ignored;
  const bool has_model = fs::exists(folder.weights / "config.json", ignored);
  BEV_CHECK(
      has_model || save.empty(), Data,
      "{} holds no model, and {}, where its run saves checkpoints (checkpoint.save), holds no "
      "checkpoint\n  if the checkpoints were moved, name their folder",
      dir.string(), save.string());
  BEV_CHECK(has_model, Data,
            "{} holds no model: it has neither model/ of a finished `bevatron train` nor the "
            "config.json of a Hugging Face model nor checkpoints",
            dir.string());
  if (folder.is_run) {
    const std::vector<std::string> args{RunDirectory(dir).config_file().string()};
    folder.config = load(args).config;
    use_tokenizer_in_folder(folder);
  } else {
    find_tokenizer(dir, folder);
  }
  const HuggingFaceModel stored = read_huggingface_config(folder.weights);
  folder.config.model = stored.model;
  folder.has_lm_head = stored.has_heads;
  folder.decoder_ids = stored.ids;
}

void open_as_checkpoint(const fs::path& dir, ModelFolder& folder) {
  OpenedCheckpoint opened = open_checkpoint(dir);
  const CheckpointReader& stored = *opened.stored;
  folder.is_checkpoint = true;
  folder.weights = stored.folder();
  folder.passed_over = std::move(opened.passed_over);
  folder.config = read_checkpoint_config(stored);
  folder.is_run = !stored.manifest().optimizer.empty();
  if (folder.config.data.tokenizer == TokenizerKind::None) {
    find_tokenizer(folder.weights, folder);
  } else {
    use_tokenizer_in_folder(folder);
  }
  std::vector<TokenizerFile> files;
  const fs::path ids = folder.weights / kGenerationConfig;
  std::error_code ignored;
  if (fs::exists(ids, ignored)) files.push_back({.path = ids, .name = kGenerationConfig});
  folder.decoder_ids = decoder_ids(folder.config, files);
}

void refuse_encoders(const ModelFolder& folder, std::string_view verb, std::string_view needed) {
  BEV_CHECK(!folder.is_bert(), Usage,
            "{} holds a BERT; {} needs {}; a BERT has `bevatron generate` (fill-mask), embed, eval "
            "and serve",
            folder.weights.string(), verb, needed);
  BEV_CHECK(!folder.is_biencoder(), Usage,
            "{} holds a bi-encoder; {} needs {}; a bi-encoder has `bevatron embed`",
            folder.weights.string(), verb, needed);
}

}  // namespace

std::string why_no_tokenizer(const ModelFolder& folder) {
  return folder.tokenizer_problem.empty()
             ? "the folder does not say which tokenizer the model was trained with"
             : folder.tokenizer_problem;
}

ModelFolder open_model_folder(const fs::path& dir) {
  ModelFolder folder;
  std::error_code ignored;
  BEV_CHECK(fs::is_directory(dir, ignored), Data, "there is no folder {}", dir.string());
  const bool has_model = RunDirectory::is_run(dir) || fs::exists(dir / "config.json", ignored);
  // A checkpoint has the configuration of its run, too, but names itself.
  const fs::path save = has_model || is_checkpoint(dir) ? fs::path() : save_folder_of_run(dir);
  if (!save.empty() && !find_checkpoints(save).empty()) {
    open_as_checkpoint(save, folder);
    folder.passed_over.push_back(format("using {} (checkpoint.save of {})", folder.weights.string(),
                                        RunDirectory(dir).config_file().string()));
  } else if (!has_model && !find_checkpoints(dir).empty()) {
    open_as_checkpoint(dir, folder);
  } else {
    open_as_huggingface(dir, save, folder);
  }
  BEV_CHECK(folder.config.data.eod < folder.config.model.vocab, Data,
            "{}: data.eod is {}, but the vocabulary of the model beside it has {} ids",
            RunDirectory(folder.is_checkpoint ? folder.weights : dir).config_file().string(),
            folder.config.data.eod, folder.config.model.vocab);
  ModelConfig& model = folder.config.model;
  if (model.position == PositionKind::Learned && model.positions == 0)
    model.positions = resolve_model(folder.config).positions;
  folder.config.model.hidden_dropout = folder.config.model.attention_dropout = 0;
  folder.config.recompute = {};
  folder.config.parallel = {};
  return folder;
}

void require_generative(const ModelFolder& folder, std::string_view verb) {
  refuse_encoders(folder, verb, "a causal language model (GPT, Llama) or a T5");
}

void require_causal(const ModelFolder& folder, std::string_view verb) {
  constexpr std::string_view kNeeded = "a causal language model (GPT, Llama)";
  refuse_encoders(folder, verb, kNeeded);
  BEV_CHECK(!folder.is_t5(), Usage,
            "{} holds a T5; {} needs {}; a T5 has `bevatron generate`, eval and serve",
            folder.weights.string(), verb, kNeeded);
}

void require_lm_head(const ModelFolder& folder) {
  BEV_CHECK(folder.has_lm_head, Usage,
            "{} holds a BertModel without an LM head (cls.predictions), which predicts no words; "
            "expected a BertForMaskedLM or BertForPreTraining (`bevatron embed` needs no head)",
            folder.weights.string());
}

int64_t longest_sequence(const ModelFolder& folder, int64_t wanted) {
  const ModelConfig& m = folder.config.model;
  const bool bounded =
      m.position != PositionKind::None && m.position != PositionKind::Relative && m.positions > 0;
  return bounded ? std::min(wanted, m.positions) : wanted;
}

}  // namespace bev
