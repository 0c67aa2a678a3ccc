// A plan as people and programs read it.
#pragma once

#include <string>

#include "plan/layout_plan.h"

namespace bev {

// Tables: the model, the layout where there are several ranks, parameters by module, memory by
// purpose, FLOP.
std::string plan_table(const LayoutPlan& plan);

// The same numbers as JSON; the keys are documented in docs/plan.md and stay.
std::string plan_json(const LayoutPlan& plan);

}  // namespace bev
