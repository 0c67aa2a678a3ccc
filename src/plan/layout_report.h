// What a plan says of several ranks, as people and programs read it.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/layout_plan.h"

namespace bev {

// Who shares what, where the shown rank sits, the schedule and its bubble.
std::string layout_rows(const LayoutPlan& plan);

// A row for each pipeline stage: what its ranks hold and allocate by purpose. Purposes that are
// nowhere a hundredth of the whole are one column.
std::string stage_rows(const LayoutPlan& plan);

// Bytes that the shown rank sends in a step, by axis, and the most that any sends; axes along which
// nothing goes are left out.
std::string sent_rows(const LayoutPlan& plan);

// The keys "layout", "ranks", "bubble" and "sent".
void add_layout(const LayoutPlan& plan, Json& json);

}  // namespace bev
