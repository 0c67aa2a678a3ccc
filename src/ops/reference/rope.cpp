#include "ops/rope.h"

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

void rope(Exec&, const ops::Rope& r) {
  require_f64("rope", r.x.dtype);
  const int64_t half = r.cosine.shape[1];
  for (int64_t token = 0; token < r.x.shape[0]; ++token) {
    const int64_t position = element<int32_t>(r.positions, token);
    for (int64_t head = 0; head < r.x.shape[1]; ++head) {
      for (int64_t i = 0; i < half; ++i) {
        const double c = at(r.cosine, position, i);
        const double s = r.inverse ? -at(r.sine, position, i) : at(r.sine, position, i);
        const double a = at(r.x, token, head, i);
        const double b = at(r.x, token, head, i + half);
        at(r.x, token, head, i) = a * c - b * s;
        at(r.x, token, head, i + half) = b * c + a * s;
      }
    }
  }
}

}  // namespace bev::reference
