// How fast samples become batches, from one thread, on a token file made for it.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"

namespace bev {

struct LoaderBench {
  std::string name;    // order of the samples, type of the ids, way of reading
  int64_t tokens = 0;  // of one batch
  Timing time{};       // of one batch
  double tokens_per_second() const { return static_cast<double>(tokens) / time.median; }
};

// Writes files of `file_tokens` tokens into a temporary folder and reads batches of eight samples
// of `length` tokens from random places. A folder that cannot be written is a Data error.
std::vector<LoaderBench> bench_loader(int64_t length, int64_t file_tokens, double seconds_each);

std::string loader_bench_table(const std::vector<LoaderBench>& results);
std::string loader_bench_json(const std::vector<LoaderBench>& results);

}  // namespace bev
