// Hugging Face's config.json read as a ModelConfig, in both spellings: that of transformers 4
// (rope_theta, rope_scaling) and that of version 5 (rope_parameters).
#pragma once

#include <array>
#include <filesystem>
#include <string_view>

#include "base/json.h"
#include "config/config.h"
#include "tensor/dtype.h"

namespace bev {

// The families of models Hugging Face's transformers and this program share, and config.json for
// one of ours. The spelling of transformers 4 is written (rope_theta, rope_scaling, torch_dtype),
// because version 5 reads it too.

enum class HuggingFaceFamily : uint8_t { Gpt2, Llama, Mistral, Qwen2, Qwen3, Bert, T5 };

// As the files spell them (model_type), in the order of the enum.
constexpr std::array<std::string_view, 7> kHuggingFaceFamilies{"gpt2",  "llama", "mistral", "qwen2",
                                                               "qwen3", "bert",  "t5"};
std::string_view name_of(HuggingFaceFamily family);

// transformers' names of activations; the first name of each is the one that is written.
struct ActivationName {
  std::string_view name;
  Activation activation;
};
constexpr std::array<ActivationName, 6> kPlainActivationNames{
    {{"gelu_new", Activation::GeluTanh},
     {"gelu_pytorch_tanh", Activation::GeluTanh},
     {"gelu", Activation::GeluErf},
     {"gelu_python", Activation::GeluErf},
     {"relu", Activation::Relu},
     {"relu2", Activation::SquaredRelu}}};
constexpr std::array<ActivationName, 6> kGatedActivationNames{
    {{"silu", Activation::SwiGlu},
     {"swish", Activation::SwiGlu},
     {"gelu_pytorch_tanh", Activation::GeGluTanh},
     {"gelu_new", Activation::GeGluTanh},
     {"gelu", Activation::GeGluErf},
     {"gelu_python", Activation::GeGluErf}}};

// The family that can hold the model. Throws a Usage error naming every field that does not fit.
HuggingFaceFamily huggingface_family(const Config& config);
// The words of that error; empty: a family holds the model.
std::string huggingface_misfit(const Config& config);

// Special ids of an encoder-decoder. The values are those of published T5s, and what transformers
// assumes.
struct DecoderIds {
  int64_t begin = 0, end = 1, pad = 0;  // begin: the first id that the decoder reads
  bool operator==(const DecoderIds&) const = default;
};

// The content of config.json for weights stored in `dtype`. Only a T5 has `ids`. REQUIRES: as
// huggingface_family.
Json huggingface_config(const Config& config, DType dtype, const DecoderIds& ids = {});

struct HuggingFaceModel {
  HuggingFaceFamily family;
  ModelConfig model;      // vocab_multiple is 1: the rows of the file and no others
  bool has_heads = true;  // false: architectures says BertModel, an encoder without heads
  DecoderIds ids{};       // of a T5
};

// Reads <dir>/config.json. A file that is not what it should be is a Data error; a model we do not
// have is a Usage error naming the field and what there is. A T5 that transformers 5 wrote is tied
// if the folder stores no head.
HuggingFaceModel read_huggingface_config(const std::filesystem::path& dir);
HuggingFaceModel parse_huggingface_config(const Json& config, std::string_view source);

// generation_config.json, which has special ids next to those of config.json. Data error for an id
// beyond the vocabulary.
inline constexpr const char* kGenerationConfig = "generation_config.json";
DecoderIds read_generation_config(const std::filesystem::path& file, int64_t vocab);
std::string generation_config(const DecoderIds& ids);

}  // namespace bev
