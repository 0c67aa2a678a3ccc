// How two stored tensors differ, and two stored models.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"

namespace bev {

// What can be said of a tensor in a few numbers.

struct TensorStatistics {
  int64_t elements = 0;
  int64_t non_finite = 0;            // infinite or not a number
  double norm = 0;                   // L2, of the finite elements
  double smallest = 0, largest = 0;  // of the finite elements; 0 where there are none
};

// Hears of elements that were read.
using ElementProgress = std::function<void(int64_t elements)>;

// In float64 and some MiB of memory, whatever the tensor's size.
TensorStatistics statistics_of(const TensorSource& source, const std::string& name,
                               const ElementProgress& progress = {});

struct TensorComparison {
  std::string name;
  TensorSource::Entry entry[2]{};  // of the first and of the second
  // Whether elements were compared: the shapes are the same, or both are tables of a vocabulary,
  // padded to different numbers of rows.
  bool is_compared = false;
  int64_t rows = 0;       // that were compared
  int64_t differing = 0;  // elements: in their bits, or in value where the types differ
  double largest = 0;     // absolute difference; infinite where one is not finite
  double relative = 0;    // norm of the difference over the norm of the second
  int64_t first_row = 0, first_column = 0;  // of those that differ

  bool is_same() const { return is_compared && differing == 0; }
  bool is_within(double tolerance) const {
    return is_same() || (is_compared && relative <= tolerance);
  }
  bool has_other_type() const { return entry[0].dtype != entry[1].dtype; }
  // Rows that only one of the two has.
  bool has_other_rows() const { return entry[0].shape != entry[1].shape; }
};

// REQUIRES: both have a tensor of this name.
TensorComparison compare_tensor(const TensorSource& first, const TensorSource& second,
                                const std::string& name, const ElementProgress& progress = {});

// "embedding.tokens.weight" and the like, under the names of this program and of Hugging Face; and
// what an optimizer keeps of it.
bool is_vocabulary_table(std::string_view name);

// What tensors are there: in both, or only in one. Without `with_optimizer` only weights.
struct TensorNames {
  std::vector<std::string> both, only_first, only_second;
};
TensorNames match_tensors(const TensorSource& first, const TensorSource& second,
                          bool with_optimizer);

}  // namespace bev
