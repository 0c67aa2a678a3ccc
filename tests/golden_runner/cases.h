// The parts of the golden runner, one function per kind of folder. `name` starts the names of its
// cases.
#pragma once

#include <filesystem>
#include <string>

#include "golden_runner/report.h"

namespace bev::golden {

// lr_schedules.json.
void run_schedules(const std::filesystem::path& file, const std::string& name, Report& report);

// vocab_padding.json.
void run_vocab_padding(const std::filesystem::path& file, const std::string& name, Report& report);

// flags*.json: options of Megatron-LM. commands.json and example_commands.json: command lines,
// which the program runs.
void run_flags(const std::filesystem::path& file, const std::string& name, Report& report);
void run_commands(const std::filesystem::path& file, const std::string& name, Report& report);

// A folder with manifest.json and the token files it describes.
void run_token_files(const std::filesystem::path& dir, const std::string& name, Report& report);
// The same folder: the tools whose arguments the manifest has, run with this program.
void run_tools(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with splits.json and samples cut from token files.
void run_samples(const std::filesystem::path& dir, const std::string& name, Report& report);

// rampup.json.
void run_rampup(const std::filesystem::path& file, const std::string& name, Report& report);
void run_loss_scale(const std::filesystem::path& file, const std::string& name, Report& report);

// A folder with unicode_classes.json and results of tokenizers. Vocabularies and texts lie in data/
// beside it or beside the folder above.
void run_tokenizers(const std::filesystem::path& dir, const std::string& name, Report& report);

// sentencepiece.json; the models lie in sentencepiece/ beside it, the texts in `data`.
void run_sentencepiece(const std::filesystem::path& file, const std::filesystem::path& data,
                       const std::string& name, Report& report);

// A vocabulary that another program trained: the same must come out here. The text it was trained
// on lies in `data`.
void run_bpe_training(const std::filesystem::path& dir, const std::filesystem::path& data,
                      const std::string& name, Report& report);

// wordpiece_*.json, with the vocabulary bert/vocab.txt and the texts in `data`.
void run_wordpiece(const std::filesystem::path& file, const std::filesystem::path& data,
                   const std::string& name, Report& report);

// bert_characters.json.
void run_bert_characters(const std::filesystem::path& file, const std::string& name,
                         Report& report);

// A folder with files of tokenizers and, for each, NAME_cases.json.
void run_tokenizer_json(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with sentences.json and punkt_tab: sentences of NLTK's Punkt, and parameters that it
// learned (trained/). The training text is in data/ above the folder.
bool is_punkt(const std::filesystem::path& dir);
void run_punkt(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with mappings.safetensors and numpy_random.json: samples of BERT and T5 from sentence
// files. The vocabulary is data/bert/vocab.txt above the folder.
bool is_masked_samples(const std::filesystem::path& dir);
void run_masked_samples(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with data/, which has samples of the inverse cloze task, and models of it.
bool is_ict(const std::filesystem::path& dir);
void run_ict(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with a BERT of transformers and inputs.safetensors.
bool is_bert(const std::filesystem::path& dir);
void run_bert(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with inputs.safetensors, steps.json and, for each variant of LAMB, the states after each
// step.
bool is_lamb(const std::filesystem::path& dir);
void run_lamb(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with a BERT of Megatron-LM, inputs.safetensors and adamw.json.
bool is_bert_megatron(const std::filesystem::path& dir);
void run_bert_megatron(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with a T5 of transformers, or of Megatron-LM, and inputs.safetensors.
bool is_t5(const std::filesystem::path& dir);
void run_t5(const std::filesystem::path& dir, const std::string& name, Report& report);
bool is_t5_megatron(const std::filesystem::path& dir);
void run_t5_megatron(const std::filesystem::path& dir, const std::string& name, Report& report);

// A folder with a bi-encoder of Megatron-LM: result.json, inputs.safetensors, grads.safetensors.
bool is_biencoder(const std::filesystem::path& dir);
void run_biencoder(const std::filesystem::path& dir, const std::string& name, Report& report);

// ops.safetensors.
void run_ops(const std::filesystem::path& file, const std::string& name, Report& report);

// A folder with config.json, weights, tokens and what came of them.
void run_model(const std::filesystem::path& dir, const std::string& name, Report& report);

}  // namespace bev::golden
