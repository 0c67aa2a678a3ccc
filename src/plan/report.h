// A plan as people and programs read it.
#pragma once

#include <string>

#include "plan/dry_run.h"

namespace bev {

// Tables: the model, parameters by module, memory by purpose, FLOP.
std::string plan_table(const Plan& plan);

// The same numbers as JSON; the keys are documented in docs/plan.md and stay.
std::string plan_json(const Plan& plan);

}  // namespace bev
