#include "checkpoint/weight_source.h"

namespace bev {

bool has_row_per_token(std::string_view parameter) {
  return parameter == "embedding.tokens.weight" || parameter == "head.weight";
}

}  // namespace bev
