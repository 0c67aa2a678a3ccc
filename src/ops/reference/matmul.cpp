#include "ops/matmul.h"

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

namespace {

// Element (i, j) of op(t).
double at_op(const ConstTensor& t, ops::Transpose transpose, int64_t i, int64_t j) {
  return transpose == ops::Transpose::No ? at(t, i, j) : at(t, j, i);
}

double apply_epilogue(const ops::Matmul& m, double sum, int64_t i, int64_t j) {
  using ops::Epilogue;
  switch (m.epilogue) {
    case Epilogue::None: return sum;
    case Epilogue::Bias: return sum + at(m.bias, j);
    case Epilogue::Activate:
    case Epilogue::BiasActivate: {
      const double x = m.epilogue == Epilogue::BiasActivate ? sum + at(m.bias, j) : sum;
      if (m.pre_activation.present()) at(m.pre_activation, i, j) = x;
      return activation_value(m.activation, x);
    }
    case Epilogue::ActivateBackward:
      return sum * activation_slope(m.activation, at(m.activation_input, i, j));
  }
  return sum;
}

}  // namespace

void matmul(Exec&, const ops::Matmul& m) {
  require_f64("matmul", m.a.dtype);
  const int64_t rows = m.out.shape[0], columns = m.out.shape[1];
  const int64_t depth = m.a.shape[m.ta == ops::Transpose::No ? 1 : 0];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = m.accumulate ? at(m.out, i, j) : m.addend.present() ? at(m.addend, i, j) : 0;
      for (int64_t k = 0; k < depth; ++k) sum += at_op(m.a, m.ta, i, k) * at_op(m.b, m.tb, k, j);
      at(m.out, i, j) = apply_epilogue(m, sum, i, j);
    }
    if (m.dbias.present()) {
      for (int64_t k = 0; k < depth; ++k) at(m.dbias, i) += at_op(m.a, m.ta, i, k);
    }
  }
}

void decode_gemm(Exec& ex, const ops::DecodeGemm& d) { reference::matmul(ex, d.gemm); }

}  // namespace bev::reference
