#include "model/model_spec.h"

#include <cmath>

namespace bev {

Init init_input(const Blueprint& b) { return {Init::Kind::Normal, b.model().init_std}; }

Init init_output(const Blueprint& b) {
  const double layers = static_cast<double>(b.shape.layers);
  return {Init::Kind::Normal, b.model().init_std / std::sqrt(2.0 * layers)};
}

}  // namespace bev
