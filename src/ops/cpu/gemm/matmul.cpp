#include "ops/matmul.h"

#include "base/check.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"

namespace bev::cpu {

namespace {

GemmOperand operand(const ConstTensor& t, ops::Transpose transpose) {
  BEV_CHECK(t.dtype == DType::f32 || t.dtype == DType::bf16, Usage,
            "matmul: the cpu device has f32 and bf16, not {}; the reference device has f64",
            name_of(t.dtype));
  const bool turned = transpose == ops::Transpose::Yes;
  return {.data = t.data,
          .dtype = t.dtype,
          .row_stride = turned ? 1 : t.stride[0],
          .col_stride = turned ? t.stride[0] : 1};
}

}  // namespace

void matmul(Exec& ex, const ops::Matmul& m) {
  using ops::Epilogue;
  if (m.addend.present()) copy(ex, {.in = m.addend, .out = m.out});
  Gemm g{.m = m.out.shape[0],
         .n = m.out.shape[1],
         .k = m.a.shape[m.ta == ops::Transpose::No ? 1 : 0],
         .a = operand(m.a, m.ta),
         .b = operand(m.b, m.tb),
         .c = m.out.data,
         .c_dtype = m.out.dtype,
         .c_stride = m.out.stride[0],
         .accumulate = m.accumulate || m.addend.present()};
  if (m.bias.present()) {
    g.bias = m.bias.data;
    g.bias_dtype = m.bias.dtype;
  }
  g.activation = m.activation;
  g.activate = m.epilogue == Epilogue::Activate || m.epilogue == Epilogue::BiasActivate;
  if (m.pre_activation.present()) {
    g.pre_activation = m.pre_activation.data;
    g.pre_activation_stride = m.pre_activation.stride[0];
  }
  if (m.epilogue == Epilogue::ActivateBackward) {
    g.activation_input = m.activation_input.data;
    g.activation_input_stride = m.activation_input.stride[0];
  }
  if (m.dbias.present()) g.row_sums = reinterpret_cast<float*>(m.dbias.data);
  HostDevice& host = host_of(ex);
  if (is_few_rows(g)) {
    few_rows(host.threads(), host.workspace(0), g);
  } else {
    gemm(host.threads(), host.workspace(0), g);
  }
}

void decode_gemm(Exec& ex, const ops::DecodeGemm& d) { cpu::matmul(ex, d.gemm); }

}  // namespace bev::cpu
