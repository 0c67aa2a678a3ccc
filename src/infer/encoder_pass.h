// Sequences through an encoder (BERT, a tower of a bi-encoder) without backward: hidden states,
// predictions of marked tokens, embeddings.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "infer/loaded_model.h"

namespace bev {

struct EncoderInput {
  std::vector<int32_t> ids{};      // token type 0
  std::vector<int32_t> marked{};   // positions whose tokens are predicted
  std::vector<int32_t> targets{};  // of marked positions; only losses() reads them
};

// Runs inputs in batches of similar lengths, padded to the longest of the batch. All functions are
// collective over the tensor ranks, with the same inputs on all ranks; every rank gets all results,
// in no particular order of the inputs.
class EncoderPass {
 public:
  // The batch size is that of model.config().train. The model must outlive this. Usage error if the
  // model runs on several pipeline ranks or the vocabulary is too small for the tensor ranks.
  explicit EncoderPass(LoadedModel& model);
  ~EncoderPass();
  EncoderPass(const EncoderPass&) = delete;
  EncoderPass& operator=(const EncoderPass&) = delete;

  using OnDone = FunctionRef<void(int64_t done)>;  // gets the number of inputs done

  // The last hidden states of one input's tokens, [ids, width].
  using HiddenSink = FunctionRef<void(size_t input, std::span<const float> hidden)>;
  void hidden(std::span<const EncoderInput> inputs, HiddenSink sink, OnDone on_done);

  // The embedding of one input by a bi-encoder, [embedding_width()]. `tower`: kQueryText or
  // kContextText.
  using EmbeddingSink = FunctionRef<void(size_t input, std::span<const float> embedding)>;
  void embeddings(std::span<const EncoderInput> inputs, int tower, EmbeddingSink sink,
                  OnDone on_done);

  // The logits of one marked position, [vocabulary].
  using LogitSink = FunctionRef<void(size_t input, size_t mark, std::span<const double> logits)>;
  void logits(std::span<const EncoderInput> inputs, LogitSink sink, OnDone on_done);

  // -log p(target) at one marked position, in nats.
  using LossSink = FunctionRef<void(size_t input, size_t mark, double nats)>;
  void losses(std::span<const EncoderInput> inputs, LossSink sink, OnDone on_done);

  int64_t width() const;
  bool is_biencoder() const;
  // Of a BERT: width().
  int64_t embedding_width() const;

 private:
  class Runner;
  struct Batch;

  void run(std::span<const EncoderInput> inputs, OnDone on_done,
           FunctionRef<void(const Batch& batch)> work);

  LoadedModel& model_;
  std::unique_ptr<Runner> runner_;
};

}  // namespace bev
