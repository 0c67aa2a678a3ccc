// A plan as people and programs read it.
#pragma once

#include <string>

#include "base/format.h"
#include "base/json.h"
#include "plan/layout_plan.h"

namespace bev {

// Tables: the model, the layout where there are several ranks, parameters by module, memory by
// purpose, FLOP.
std::string plan_table(const LayoutPlan& plan);

// The same numbers as JSON; the keys are documented in docs/plan.md and stay.
std::string plan_json(const LayoutPlan& plan);

// The rows of a plan's tables.

inline std::string report_row(const std::string& name, const std::string& value,
                              const std::string& note = "") {
  return note.empty() ? format("  {:<34} {:>24}\n", name, value)
                      : format("  {:<34} {:>24}  {}\n", name, value, note);
}

// What a plan says of several ranks, as people and programs read it.

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
