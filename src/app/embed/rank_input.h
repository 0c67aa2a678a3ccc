// The input file of a verb on every rank. Only the first rank has what comes through stdin.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/cli/stdio_files.h"
#include "app/launch/inference_ranks.h"

namespace bev::app {

class RankInput {
 public:
  // Collective.
  RankInput(const std::string& path, const RankContext& place) {
    if (path != "-" || place.is_first) input_.emplace(path);
    if (path == "-" && place.world.size() > 1)
      received_ = broadcast_text(place.world, place.is_first ? std::string(input_->text()) : "", 0);
  }

  // Lives as long as this.
  std::string_view text() const { return received_ ? *received_ : input_->text(); }
  std::string name() const { return input_ ? input_->name() : "stdin"; }

 private:
  std::optional<WholeInput> input_;
  std::optional<std::string> received_;
};

}  // namespace bev::app
