// A configuration under two layouts, and the smallest one that still says something about it.
#pragma once

#include <string>

#include "config/config.h"

namespace bev {

// The same training twice: only how it is divided differs.
struct LayoutPair {
  Config first, second;
};

// What a comparison computes with.
struct Arithmetic {
  DeviceKind device;
  Precision precision;
};

// `config` as a comparison can run it, on made-up tokens and without output. What the user has not
// said and a training needs is filled in.
Config comparable(Config config, const Arithmetic& arithmetic, int64_t steps);

// Both pad the vocabulary to the same number of rows and, where the batch is not given, take as
// many samples. REQUIRES: whole copies of the model in both layouts.
LayoutPair under_layouts(const Config& config, const ParallelConfig& first,
                         const ParallelConfig& second);

// The same options with the smallest shapes that are legal in both layouts and cut the same things:
// as many layers as there are stages, few narrow heads in the same proportion, short sequences, two
// micro-batches for every pipeline rank. The learning rate falls over the steps of the comparison;
// Adam's eps is at least 1e-4, so that rounding is not scaled up.
// REQUIRES: check() finds nothing in either.
LayoutPair shrink(const LayoutPair& pair, int64_t steps);

// "layers 12 -> 2, width 768 -> 16": the shapes that differ; empty when none does.
std::string shrunk_text(const Config& before, const Config& after);
// "gelu-tanh, layernorm, learned positions, ...": the options that decide what is computed.
std::string options_text(const Config& config);

}  // namespace bev
