// Items that are longer than what a model sees.
#pragma once

#include "infer/scoring_item.h"

namespace bev {

// Leaves out ids at the beginning until `length` tokens see all the others. Data error when what is
// scored is too long itself.
void shorten(ScoringItem& item, int64_t length);

}  // namespace bev
