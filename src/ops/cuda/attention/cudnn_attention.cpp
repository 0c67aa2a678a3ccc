// The only file that sees cuDNN's frontend, which takes a minute to compile. The frontend calls
// cuDNN, the CUDA runtime and the driver through dlsym, so that nothing is linked against them.
#include "ops/cuda/attention/cudnn_attention.h"

#include "base/check.h"
#include "ops/cuda/gpu.h"
#include "ops/cuda/workspace.h"

#ifdef BEV_HAS_CUDNN

#include <cudnn_frontend.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <unordered_map>

#include "device/cuda/cuda_library.h"
#include "device/cuda/gpu_info.h"

// The frontend resolves the functions of cuDNN in this.
void* cudnn_frontend::cudnn_dlhandle = nullptr;

namespace bev::cuda {

namespace {

namespace fe = cudnn_frontend;

// The names of the tensors in a graph.
enum Uid : int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kLse,
  kDOut,
  kDQ,
  kDK,
  kDV,
  kQueryLengths,
  kKeyLengths,
  kBias
};

// What forward and backward have in common; the tensors that only backward has are absent else.
struct Problem {
  ConstTensor q, k, v, out, lse, bias;
  int64_t sequences;
  double scale;
  const ops::AttentionMask& mask;
  ConstTensor dout{}, dq{}, dk{}, dv{};

  explicit Problem(const ops::Attention& a)
      : q(a.q),
        k(a.k),
        v(a.v),
        out(a.out),
        lse(a.lse),
        bias(a.bias),
        sequences(a.sequences),
        scale(a.scale),
        mask(a.mask) {}
  explicit Problem(const ops::AttentionBackward& a)
      : q(a.q),
        k(a.k),
        v(a.v),
        out(a.out),
        lse(a.lse),
        bias(a.bias),
        sequences(a.sequences),
        scale(a.scale),
        mask(a.mask),
        dout(a.dout),
        dq(a.dq),
        dk(a.dk),
        dv(a.dv) {}

  bool is_backward() const { return dout.present(); }
  int64_t queries() const { return q.shape[0] / sequences; }
  int64_t keys() const { return k.shape[0] / sequences; }
  // [tokens, heads, head_dim], all of them.
  std::array<const ConstTensor*, 8> views() const {
    return {&q, &k, &v, &out, &dout, &dq, &dk, &dv};
  }
};

// Everything a plan depends on. The addresses do not belong to it, being 16-byte aligned.
using Key = PlanKey<31>;

Key key_of(const Problem& p) {
  Key key{p.sequences,
          p.queries(),
          p.keys(),
          p.q.shape[1],
          p.k.shape[1],
          p.q.shape[2],
          static_cast<int64_t>(p.q.dtype),
          static_cast<int64_t>(p.mask.causal),
          p.mask.window,
          std::bit_cast<int64_t>(p.scale),
          static_cast<int64_t>(p.is_backward()),
          static_cast<int64_t>(p.mask.key_lengths.present()),
          static_cast<int64_t>(p.bias.present()),
          p.bias.stride[0],
          p.bias.stride[1]};
  size_t next = 15;
  for (const ConstTensor* view : p.views()) {
    key[next++] = view->stride[0];
    key[next++] = view->stride[1];
  }
  return key;
}

bool is_aligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// What attention_dispatch.h cannot see; null when nothing of it speaks against cuDNN. Must be
// cheap: every call comes through here.
const char* refusal(const Problem& p) {
  if (!is_contiguous(p.lse)) return "lse with gaps";
  if (!is_aligned(p.lse.data)) return "lse is not aligned to 16 bytes";
  for (const ConstTensor* view : p.views()) {
    if (view->present() && !is_aligned(view->data)) return "operands not aligned to 16 bytes";
  }
  if (p.bias.present() && !is_aligned(p.bias.data)) return "bias not aligned to 16 bytes";
  return nullptr;
}

struct Plan {
  fe::graph::Graph graph;
  std::string why_not;
  // By Uid. The entries stay, a call changes the addresses: nothing is allocated.
  std::unordered_map<int64_t, void*> addresses;
};

// [tokens, heads, head_dim] as cuDNN's [sequences, heads, tokens of one, head_dim].
fe::graph::Tensor_attributes view_of(const char* name, Uid uid, const ConstTensor& t,
                                     int64_t sequences) {
  const int64_t tokens = t.shape[0] / sequences;
  fe::graph::Tensor_attributes view;
  view.set_name(name)
      .set_uid(uid)
      .set_dim({sequences, t.shape[1], tokens, t.shape[2]})
      .set_stride({tokens * t.stride[0], t.stride[1], t.stride[0], 1});
  return view;
}

void describe(fe::graph::Tensor_attributes& output, Uid uid, const ConstTensor& t,
              int64_t sequences) {
  const fe::graph::Tensor_attributes view = view_of("", uid, t, sequences);
  output.set_output(true).set_uid(uid).set_dim(view.get_dim()).set_stride(view.get_stride());
}

// max + log(sum exp), natural, of the scaled scores: what ops::Attention calls lse.
template <class Stats>
void describe_lse(Stats& stats, const Problem& p) {
  const int64_t heads = p.q.shape[1], queries = p.queries();
  stats.set_uid(kLse)
      .set_dim({p.sequences, heads, queries, 1})
      .set_stride({heads * queries, queries, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

// i32 [sequences]: tokens of each before its padding.
fe::graph::Tensor_attributes lengths_view(const char* name, Uid uid, int64_t sequences) {
  fe::graph::Tensor_attributes view;
  view.set_name(name)
      .set_uid(uid)
      .set_dim({sequences, 1, 1, 1})
      .set_stride({1, 1, 1, 1})
      .set_data_type(fe::DataType_t::INT32);
  return view;
}

// [1, heads, queries, keys]: the sequences share it.
fe::graph::Tensor_attributes bias_view(const ConstTensor& bias) {
  fe::graph::Tensor_attributes view;
  view.set_name("bias")
      .set_uid(kBias)
      .set_dim({1, bias.shape[0], bias.shape[1], bias.shape[2]})
      .set_stride({bias.shape[0] * bias.stride[0], bias.stride[0], bias.stride[1], 1});
  return view;
}

template <class Options>
Options options_of(fe::graph::Graph& graph, const Problem& p) {
  Options options;
  options.set_name("attention").set_attn_scale(static_cast<float>(p.scale));
  if (p.mask.causal) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
  }
  // It keeps j > i - bound.
  if (p.mask.window > 0) {
    options.set_diagonal_band_left_bound(static_cast<int>(p.mask.window));
  }
  if (p.bias.present()) options.set_bias(graph.tensor(bias_view(p.bias)));
  if (p.mask.key_lengths.present()) {
    options.set_padding_mask(true)
        .set_seq_len_q(graph.tensor(lengths_view("query_lengths", kQueryLengths, p.sequences)))
        .set_seq_len_kv(graph.tensor(lengths_view("key_lengths", kKeyLengths, p.sequences)));
  }
  return options;
}

void add_operations(fe::graph::Graph& graph, const Problem& p) {
  graph.set_io_data_type(p.q.dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const auto tensor = [&](const char* name, Uid uid, const ConstTensor& t) {
    return graph.tensor(view_of(name, uid, t, p.sequences));
  };
  const auto q = tensor("q", kQ, p.q), k = tensor("k", kK, p.k), v = tensor("v", kV, p.v);
  if (!p.is_backward()) {
    auto options = options_of<fe::graph::SDPA_attributes>(graph, p);
    options.set_generate_stats(true);
    const auto [out, stats] = graph.sdpa(q, k, v, options);
    describe(*out, kOut, p.out, p.sequences);
    stats->set_output(true);
    describe_lse(*stats, p);
    return;
  }
  const auto out = tensor("out", kOut, p.out), dout = tensor("dout", kDOut, p.dout);
  fe::graph::Tensor_attributes stats;
  stats.set_name("lse");
  describe_lse(stats, p);
  const auto [dq, dk, dv] =
      graph.sdpa_backward(q, k, v, out, dout, graph.tensor(stats),
                          options_of<fe::graph::SDPA_backward_attributes>(graph, p));
  describe(*dq, kDQ, p.dq, p.sequences);
  describe(*dk, kDK, p.dk, p.sequences);
  describe(*dv, kDV, p.dv, p.sequences);
}

// The first of the library's proposals that can be built and keeps to the workspace. Returns why
// there is none.
std::string build(fe::graph::Graph& graph, cudnnHandle_t handle, int64_t workspace) {
  fe::error_t status = graph.validate();
  if (status.is_good()) status = graph.build_operation_graph(handle);
  if (status.is_good()) {
    status = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
  }
  graph.deselect_workspace_greater_than(workspace);
  if (status.is_good()) status = graph.check_support();
  if (status.is_good()) status = graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE);
  int64_t wanted = 0;
  if (status.is_good()) status = graph.get_workspace_size(wanted);
  if (status.is_bad()) return status.get_message();
  if (wanted > workspace) {
    return format("it wants {} of workspace, {} are planned", as_bytes(static_cast<double>(wanted)),
                  as_bytes(static_cast<double>(workspace)));
  }
  return {};
}

}  // namespace

struct CudnnAttention::State {
  explicit State(Gpu& device) : gpu(device) {}
  ~State() {
    plans.clear();
    if (handle != nullptr) fe::detail::destroy_handle(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // `workspace`: bytes that the planner books for this call.
  Plan& plan_of(const Problem& p, size_t workspace) {
    const Key key = key_of(p);
    const auto known = plans.find(key);
    if (known != plans.end()) return known->second;
    Plan& plan = plans[key];
    try {
      add_operations(plan.graph, p);
      plan.why_not = build(plan.graph, handle, static_cast<int64_t>(workspace));
    } catch (const std::exception& e) {
      plan.why_not = e.what();
    }
    // Nothing of a failed call may be found by the next check_launch().
    cudaGetLastError();
    return plan;
  }

  template <class Args>
  std::string why_not(const Args& a) {
    const Problem p(a);
    if (const char* reason = refusal(p)) return reason;
    return plan_of(p, workspace_bytes(a, gpu.policy())).why_not;
  }

  template <class Args>
  void run(Exec& ex, const Args& a, const Tensor& workspace) {
    const Problem p(a);
    Plan& plan = plan_of(p, workspace_bytes(a, gpu.policy()));
    const auto bind = [&](Uid uid, const ConstTensor& t) {
      if (t.present()) plan.addresses[uid] = const_cast<std::byte*>(t.data);
    };
    bind(kQ, p.q);
    bind(kK, p.k);
    bind(kV, p.v);
    bind(kOut, p.out);
    bind(kLse, p.lse);
    bind(kDOut, p.dout);
    bind(kDQ, p.dq);
    bind(kDK, p.dk);
    bind(kDV, p.dv);
    bind(kQueryLengths, p.mask.query_lengths);
    bind(kKeyLengths, p.mask.key_lengths);
    bind(kBias, p.bias);
    BEV_CHECK(fe::detail::set_stream(handle, stream_of(ex)) == CUDNN_STATUS_SUCCESS, Device,
              "cuDNN does not take the stream");
    fe::error_t status = plan.graph.execute(handle, plan.addresses, workspace.data);
    BEV_CHECK(status.is_good(), Device, "cuDNN, {}: {}",
              p.is_backward() ? "attention backward" : "attention", status.get_message());
  }

  Gpu& gpu;
  cudnnHandle_t handle = nullptr;
  std::unordered_map<Key, Plan, PlanKeyHash> plans;
};

CudnnAttention::CudnnAttention(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudnnAttention::~CudnnAttention() = default;

std::unique_ptr<CudnnAttention> CudnnAttention::load(Gpu& gpu, std::string& why) {
  const CudaLibrary cudnn = CudaLibrary::open({format("libcudnn.so.{}", CUDNN_MAJOR)}, why);
  if (!cudnn.loaded()) return nullptr;
  // The frontend asks for the runtime by this name alone, which finds it wherever it was loaded
  // from, and prefers that of CUDA 12 unless told.
  const std::string runtime = format("libcudart.so.{}", CUDART_VERSION / 1000);
  if (!CudaLibrary::open({runtime}, why).loaded()) return nullptr;
  ::setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
  cudnn_frontend::cudnn_dlhandle = cudnn.handle();
  auto state = std::make_unique<State>(gpu);
  try {
    const int version = static_cast<int>(fe::detail::get_backend_version());
    if (version < kOldestCudnn || is_broken_cudnn(version)) {
      why = format("{} is version {}.{}.{}, {}", cudnn.path(), version / 10000, version / 100 % 100,
                   version % 100,
                   version < kOldestCudnn ? "which is too old" : "whose attention is broken");
      return nullptr;
    }
    const cudnnStatus_t status = fe::detail::create_handle(&state->handle);
    if (status != CUDNN_STATUS_SUCCESS) {
      why = format("{} does not start: {}", cudnn.path(), fe::detail::get_error_string(status));
      return nullptr;
    }
  } catch (const std::exception& e) {
    why = e.what();
    return nullptr;
  }
  why.clear();
  return std::unique_ptr<CudnnAttention>(new CudnnAttention(std::move(state)));
}

std::string CudnnAttention::why_not(const ops::Attention& a) { return state_->why_not(a); }
std::string CudnnAttention::why_not(const ops::AttentionBackward& a) { return state_->why_not(a); }

void CudnnAttention::forward(Exec& ex, const ops::Attention& a, const Tensor& workspace) {
  state_->run(ex, a, workspace);
}

void CudnnAttention::backward(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace) {
  state_->run(ex, a, workspace);
}

}  // namespace bev::cuda

#else

namespace bev::cuda {

struct CudnnAttention::State {};

CudnnAttention::CudnnAttention(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudnnAttention::~CudnnAttention() = default;

std::unique_ptr<CudnnAttention> CudnnAttention::load(Gpu&, std::string& why) {
  why = "this build has no cuDNN frontend headers";
  return nullptr;
}

std::string CudnnAttention::why_not(const ops::Attention&) { return "not in this build"; }
std::string CudnnAttention::why_not(const ops::AttentionBackward&) { return "not in this build"; }
void CudnnAttention::forward(Exec&, const ops::Attention&, const Tensor&) {}
void CudnnAttention::backward(Exec&, const ops::AttentionBackward&, const Tensor&) {}

}  // namespace bev::cuda

#endif
