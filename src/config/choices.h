// The enums a user can choose from, each with its names in declaration order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "text/tokenizer_kind.h"

namespace bev {

template <class E>
struct EnumNames;  // specialised beside each enum

template <class E>
constexpr std::string_view name_of_choice(E value) {
  return EnumNames<E>::names[static_cast<size_t>(value)];
}

// Auto: cuda where a GPU can be used, else cpu; load() decides, so nobody else meets it.
enum class DeviceKind : uint8_t { Auto, Reference, Cpu, Cuda, Null };
template <>
struct EnumNames<DeviceKind> {
  static constexpr std::array<std::string_view, 5> names{"auto", "reference", "cpu", "cuda",
                                                         "null"};
};

// What parameters and activations are stored in. Auto: f64 on reference, f32 on cpu, bf16 on cuda.
enum class Precision : uint8_t { Auto, F64, F32, Bf16, F16 };
template <>
struct EnumNames<Precision> {
  static constexpr std::array<std::string_view, 5> names{"auto", "f64", "f32", "bf16", "fp16"};
};

// What moves tensors between ranks that are processes.
enum class CommBackend : uint8_t { Auto, Mpi, Gloo, Nccl };
template <>
struct EnumNames<CommBackend> {
  static constexpr std::array<std::string_view, 4> names{"auto", "mpi", "gloo", "nccl"};
};

// What gradients and moments are stored in.
enum class StatePrecision : uint8_t { F32, Bf16 };
template <>
struct EnumNames<StatePrecision> {
  static constexpr std::array<std::string_view, 2> names{"f32", "bf16"};
};

enum class NormKind : uint8_t { LayerNorm, RmsNorm };
template <>
struct EnumNames<NormKind> {
  static constexpr std::array<std::string_view, 2> names{"layernorm", "rmsnorm"};
};

// The non-linearity of the MLP. The gated ones read [gate | up] and give activation(gate) * up.
enum class Activation : uint8_t {
  GeluTanh,
  GeluErf,
  Relu,
  SquaredRelu,
  Tanh,
  SwiGlu,
  GeGluTanh,
  GeGluErf
};
template <>
struct EnumNames<Activation> {
  static constexpr std::array<std::string_view, 8> names{
      "gelu-tanh", "gelu-erf", "relu", "squared-relu", "tanh", "swiglu", "geglu-tanh", "geglu-erf"};
};
constexpr bool is_gated(Activation a) { return a >= Activation::SwiGlu; }

enum class ModelFamily : uint8_t { Gpt, Bert, T5, Biencoder };
template <>
struct EnumNames<ModelFamily> {
  static constexpr std::array<std::string_view, 4> names{"gpt", "bert", "t5", "biencoder"};
};

enum class NormPlacement : uint8_t { Pre, Post };
template <>
struct EnumNames<NormPlacement> {
  static constexpr std::array<std::string_view, 2> names{"pre", "post"};
};

enum class PositionKind : uint8_t { Learned, Rope, None, Relative };
template <>
struct EnumNames<PositionKind> {
  static constexpr std::array<std::string_view, 4> names{"learned", "rope", "none", "relative"};
};

// Which linear layers carry a bias.
enum class BiasKind : uint8_t { None, All, Qkv };
template <>
struct EnumNames<BiasKind> {
  static constexpr std::array<std::string_view, 3> names{"none", "all", "qkv"};
};

enum class RopeScaling : uint8_t { None, Llama3 };
template <>
struct EnumNames<RopeScaling> {
  static constexpr std::array<std::string_view, 2> names{"none", "llama3"};
};

// The mean of a step's loss. Token: over all counted values of the global batch. MicroBatch: over
// the means of its micro-batches.
enum class LossAverage : uint8_t { Token, MicroBatch };
template <>
struct EnumNames<LossAverage> {
  static constexpr std::array<std::string_view, 2> names{"token", "micro-batch"};
};

// Torch spreads e over all classes, Megatron e * V / (V - 1).
enum class Smoothing : uint8_t { Torch, Megatron };
template <>
struct EnumNames<Smoothing> {
  static constexpr std::array<std::string_view, 2> names{"torch", "megatron"};
};

// LambPaper, LambPreprint: You et al. 2019, Algorithm 2, as published and as in the third version
// of the preprint. MyLamb, MyLamb2, MyLamb3, LambTp: the variants of a study of large batches.
enum class OptimizerKind : uint8_t {
  AdamW,
  Sgd,
  Lamb,
  LambPaper,
  LambPreprint,
  MyLamb,
  MyLamb2,
  MyLamb3,
  LambTp
};
template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::array<std::string_view, 9> names{"adam",       "sgd",           "lamb",
                                                         "lamb-paper", "lamb-paper-v3", "mylamb",
                                                         "mylamb2",    "mylamb3",       "lambtp"};
};
constexpr bool is_lamb(OptimizerKind kind) { return kind >= OptimizerKind::Lamb; }

// Of LAMB: norms of whole logical tensors, or of the shard that a tensor-parallel rank holds.
enum class NormScope : uint8_t { Whole, TensorShard };
template <>
struct EnumNames<NormScope> {
  static constexpr std::array<std::string_view, 2> names{"whole", "tensor-shard"};
};

enum class LrDecay : uint8_t { Constant, Linear, Cosine, InverseSquareRoot, Wsd };
template <>
struct EnumNames<LrDecay> {
  static constexpr std::array<std::string_view, 5> names{"constant", "linear", "cosine",
                                                         "inverse-square-root", "WSD"};
};

enum class WsdDecay : uint8_t { Linear, Cosine, Exponential, MinusSqrt };
template <>
struct EnumNames<WsdDecay> {
  static constexpr std::array<std::string_view, 4> names{"linear", "cosine", "exponential",
                                                         "minus_sqrt"};
};

enum class DecayRamp : uint8_t { Constant, Linear, Cosine };
template <>
struct EnumNames<DecayRamp> {
  static constexpr std::array<std::string_view, 3> names{"constant", "linear", "cosine"};
};

template <>
struct EnumNames<TokenizerKind> {
  static constexpr auto names = kTokenizerNames;
};

// Which sample comes when. Arithmetic: a function of the number alone. Megatron: its shuffled
// documents, samples and permutation, bit for bit.
enum class SampleOrder : uint8_t { Arithmetic, Megatron };
template <>
struct EnumNames<SampleOrder> {
  static constexpr std::array<std::string_view, 2> names{"arithmetic", "megatron"};
};

// How a training walks its samples. Cyclic permutes them anew in each epoch.
enum class SamplerKind : uint8_t { Single, Cyclic };
template <>
struct EnumNames<SamplerKind> {
  static constexpr std::array<std::string_view, 2> names{"single", "cyclic"};
};

// Whose behaviour counts where Megatron-LM's versions differ: today's, or that of October 2023.
enum class Compat : uint8_t { Main, Classic };
template <>
struct EnumNames<Compat> {
  static constexpr std::array<std::string_view, 2> names{"main", "classic"};
};

// What happens when a loss or gradient is not finite. The update is never applied.
enum class OnNonFinite : uint8_t { Stop, Skip, Rollback };
template <>
struct EnumNames<OnNonFinite> {
  static constexpr std::array<std::string_view, 3> names{"stop", "skip", "rollback"};
};

// What happens when a loss or the norm of a gradient stands out. Only Ignore and Log apply the
// update.
enum class OnSpike : uint8_t { Ignore, Log, Skip, Rollback, Stop };
template <>
struct EnumNames<OnSpike> {
  static constexpr std::array<std::string_view, 5> names{"ignore", "log", "skip", "rollback",
                                                         "stop"};
};

// What happens when ranks that hold the same numbers turn out to hold different ones.
enum class OnCorruption : uint8_t { Stop, Rollback };
template <>
struct EnumNames<OnCorruption> {
  static constexpr std::array<std::string_view, 2> names{"stop", "rollback"};
};

// Whose times the log gives: of the slowest rank, of the fastest and the slowest, of each.
enum class TimedRanks : uint8_t { Max, MinMax, All };
template <>
struct EnumNames<TimedRanks> {
  static constexpr std::array<std::string_view, 3> names{"max", "minmax", "all"};
};

// Whose schedule of the learning rate counts when a run continues from a checkpoint.
enum class SchedulerSource : uint8_t { Same, New, Checkpoint };
template <>
struct EnumNames<SchedulerSource> {
  static constexpr std::array<std::string_view, 3> names{"same", "new", "checkpoint"};
};

// None keeps every activation. Selective recomputes the listed modules. Full keeps only inputs of
// blocks.
enum class Recompute : uint8_t { None, Selective, Full };
template <>
struct EnumNames<Recompute> {
  static constexpr std::array<std::string_view, 3> names{"none", "selective", "full"};
};

// Which blocks of a stage are recomputed. Uniform: all, in groups that keep only the input of their
// first. Block: the first ones, each for itself; the others keep everything.
enum class RecomputeMethod : uint8_t { Uniform, Block };
template <>
struct EnumNames<RecomputeMethod> {
  static constexpr std::array<std::string_view, 2> names{"uniform", "block"};
};

// In which order the micro-batches go through a pipeline; docs/parallelism.md compares them.
enum class ScheduleKind : uint8_t { GPipe, OneFOneB, Interleaved, ZeroBubble };
template <>
struct EnumNames<ScheduleKind> {
  static constexpr std::array<std::string_view, 4> names{"gpipe", "1f1b", "interleaved",
                                                         "zero-bubble"};
};

}  // namespace bev
