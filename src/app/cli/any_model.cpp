#include "app/cli/any_model.h"

#include <algorithm>

namespace bev::app {

void fill_in_model(Config& config) {
  const auto otherwise = [](auto& field, auto value) {
    if (field == 0) field = value;
  };
  constexpr int64_t kAnyVocab = int64_t{1} << 28;
  otherwise(config.model.layers, 1);
  if (config.model.width == 0) config.model.width = config.model.heads = 1;
  otherwise(config.model.heads, 1);
  otherwise(config.model.vocab, kAnyVocab);
  otherwise(config.model.positions, std::max<int64_t>(1, config.train.sequence));
  otherwise(config.train.micro_batch, 1);
  if (config.train.samples == 0) otherwise(config.train.iterations, 1);
  otherwise(config.optim.lr, 1.0);
}

}  // namespace bev::app
