// Pictures of a schedule on the simulated clock: a row per rank, time to the right.
#pragma once

#include <string_view>

#include "pipeline/schedule_simulation.h"

namespace bev {

// For a terminal or a code block. Omits the middle if a row would have more than
// `columns`. Throws as simulate() does.
std::string render_text(std::span<const Program> programs, const PipelineShape& shape,
                        std::span<const StageCosts> stages = {}, int columns = 160);

// A self-contained SVG; the tooltip of each box describes its instruction.
std::string render_svg(std::span<const Program> programs, const PipelineShape& shape,
                       std::span<const StageCosts> stages = {}, std::string_view title = {});

}  // namespace bev
