// The trainings that must not depend on how they are divided.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace bev::test {

// Tiny models of which every axis can be cut in four.
Config divisible_gpt();
Config divisible_llama();  // with grouped heads
// Padded sentence pairs of several lengths in each micro-batch.
Config divisible_bert();
// Encoder and decoder of unequal depth and length, padded texts.
Config divisible_t5();
Config divisible_huggingface_t5();
// Pairs of texts, some of them without weight.
Config divisible_biencoder(bool shared_towers);
// `config` with at least a layer, or a group of layers that are recomputed together, for each of
// its stages.
Config with_layers_for_all_stages(Config config);
// `config` with that optimizer, and what LAMB needs to be compared within rounding.
Config with_optimizer(Config config, OptimizerKind kind);

// As parse_layout() reads them: every axis alone, every two together, mixtures of up to 16 ranks.
const std::vector<std::string_view>& layouts();

// Two trainings that differ in nothing but their layout. The rank of a bi-encoder has the pairs of
// all data-parallel ranks in a micro-batch, because it compares them.
struct LayoutCase {
  std::string layout, name;  // "tp2.sp", "tp2_sp_on_gpt_tied_dropout"
  Config one, many;
};
void PrintTo(const LayoutCase& layout_case, std::ostream* out);  // found by GoogleTest

// Every layout with every combination of options that is tried, in two parts. The first has every
// layout with a GPT or Llama, and of all model families every pair of values (layout_factors.h)
// that the whole has.
std::vector<LayoutCase> quick_layout_cases();
std::vector<LayoutCase> slow_layout_cases();
// Pipelines of a T5 that do not divide encoder and decoder where they would by default.
std::vector<LayoutCase> split_layout_cases();

// The same on the cpu device in f32. Adam divides what is left of a gradient that is nearly zero by
// itself, and that is rounding: with an eps of 1e-4, as in verify/shrink.cpp, it is scaled by 1e4
// at most.
LayoutCase on_cpu(LayoutCase c);

// Layouts of up to eight ranks, for the cuda device in that precision.
std::vector<LayoutCase> cuda_layout_cases(Precision precision);

}  // namespace bev::test
