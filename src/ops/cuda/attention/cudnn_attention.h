// Attention through cuDNN's graph API, for what cuDNN can do; flash_attention.h serves the rest.
#pragma once

#include <memory>
#include <string>

#include "ops/attention.h"

namespace bev::cuda {

class Gpu;

class CudnnAttention {
 public:
  // Null where the library cannot be loaded; `why` then says why.
  static std::unique_ptr<CudnnAttention> load(Gpu& gpu, std::string& why);
  ~CudnnAttention();

  // Why cuDNN does not serve these arguments; empty when it does. A plan is made on the first call.
  // REQUIRES: attention_dispatch.h says that it may serve.
  std::string why_not(const ops::Attention& a);
  std::string why_not(const ops::AttentionBackward& a);

  // REQUIRES: why_not() is empty. `workspace`: what workspace_bytes() says.
  void forward(Exec& ex, const ops::Attention& a, const Tensor& workspace);
  void backward(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace);

 private:
  struct State;
  explicit CudnnAttention(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bev::cuda
