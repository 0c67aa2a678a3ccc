// Pictures of a schedule on the simulated clock: a row per rank, time to the right.
#pragma once

#include <string_view>

#include "pipeline/schedule_simulation.h"

namespace bev {

// For a terminal or a code block. The middle is left out where a row would have more than
// `columns`. Throws as simulate() does.
std::string render_text(std::span<const Program> programs, const PipelineShape& shape,
                        std::span<const StageCosts> stages = {}, int columns = 160);

// A self-contained SVG; each box says what it is when pointed at.
std::string render_svg(std::span<const Program> programs, const PipelineShape& shape,
                       std::span<const StageCosts> stages = {}, std::string_view title = {});

}  // namespace bev
