#include "checkpoint/weight_source.h"

namespace bev {

bool has_row_per_token(const ParamSpec& spec) {
  return spec.name == "embedding.tokens.weight" || spec.name == "head.weight";
}

}  // namespace bev
