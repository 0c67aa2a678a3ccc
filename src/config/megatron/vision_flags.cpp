// Flags of vision models.
#include "config/megatron/flag_topics.h"

namespace bev {

namespace {

// clang-format off: a line per flag reads as a table

constexpr MegatronFlag kVisionModels[] = {
    {"--num-classes", "N", "1000"},
    {"--img-h", "N", "224"},
    {"--img-w", "N", "224"},
    {"--num-channels", "N", "3"},
    {"--patch-dim", "N", "16"},
    {"--classes-fraction", "X", "1"},
    {"--data-per-class-fraction", "X", "1"},
    {"--vision-pretraining"},
    {"--vision-pretraining-type", "classify|inpaint|dino", "classify"},
    {"--vision-backbone-type", "vit|mit|swin", "vit"},
    {"--swin-backbone-type", "tiny|base|h3", "tiny"},
    {"--mask-type", "random|row", "random"},
    {"--mask-factor", "X", "1"},
    {"--iter-per-epoch", "N", "1250"},
    {"--dino-local-img-size", "N", "96"},
    {"--dino-local-crops-number", "N", "10"},
    {"--dino-head-hidden-size", "N", "2048"},
    {"--dino-bottleneck-size", "N", "256"},
    {"--dino-freeze-last-layer", "X", "1"},
    {"--dino-norm-last-layer"},
    {"--dino-warmup-teacher-temp", "X", "0.04"},
    {"--dino-teacher-temp", "X", "0.07"},
    {"--dino-warmup-teacher-temp-epochs", "N", "30"},
    {"--img-dim", "N", "224"},
};

// clang-format on

}  // namespace

std::span<const FlagTopic> vision_topics() {
  static constexpr FlagTopic kTopics[] = {
      {"vision models", FlagClass::Later, "this version has no vision models", kVisionModels},
  };
  return kTopics;
}

}  // namespace bev
