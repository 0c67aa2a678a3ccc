// The tables of bench, from numbers that are given here.
#include <gtest/gtest.h>

#include "bench/generation_bench.h"
#include "bench/loader_bench.h"
#include "bench/op_bench.h"
#include "bench/step_bench.h"

namespace bev {
namespace {

TEST(BenchTables, OfOps) {
  const OpBench bench{.peak = {.flops = 2e11, .bandwidth = 5e10},
                      .ops = {{.name = "norm",
                               .shape = "14 x 16",
                               .time = {.median = 2e-6, .low = 1.9e-6, .high = 2.2e-6, .calls = 3},
                               .cost = {.flops = 4e3, .bytes_moved = 6e4},
                               .floor = 1.2e-6},
                              {.name = "a name beyond its column",
                               .shape = "4 x 1024, 16 heads x 64",
                               .time = {.median = 0.25, .low = 0.25, .high = 0.25},
                               .cost = {.flops = 1e10, .bytes_moved = 1e9},
                               .floor = 0.05}}};
  const std::string table = op_bench_table(bench);
  EXPECT_EQ(table.substr(0, table.find("floor: ")),
            "op                 shape                    median us  spread %   GFLOP/s     GB/s  "
            "of floor\n"
            "norm               14 x 16                        2.0      15.0       2.0     30.0    "
            "  0.60\n"
            "a name beyond its column 4 x 1024, 16 heads x 64   250000.0       0.0      40.0      "
            "4.0      0.20\n");
}

TEST(BenchTables, OfTheLoader) {
  EXPECT_EQ(loader_bench_table(
                {{.name = "arithmetic, u16, mapped", .tokens = 4096, .time = {.median = 1e-4}}}),
            "order, ids, reading                     M tokens/s      us/batch\n"
            "arithmetic, u16, mapped                       41.0         100.0\n");
}

TEST(BenchTables, OfGeneration) {
  const GenerationBench bench{.options = {.batch = 2, .prompt = 128, .tokens = 11},
                              .device = "cpu",
                              .precision = "f32",
                              .load_seconds = 1.25,
                              .first_token = {.median = 0.5, .low = 0.4, .high = 0.75},
                              .between = {.median = 0.1},
                              .forward_seconds = 0.25,
                              .bandwidth = 1e10,
                              .weight_bytes = 5e7,
                              .cache_bytes = 5e7,
                              .memory_bytes = 2.5e9};
  EXPECT_EQ(
      generation_bench_table(bench),
      "texts, prompt, new tokens       2, 128, 11 on cpu in f32\n"
      "weights, memory, autotuning     1.2 s\n"
      "time to first token             500.00 ms (400.00 - 750.00)\n"
      "prompt tokens per second        512\n"
      "forward of training             1024 tokens per second; prompts reach 0.500 of it\n"
      "new tokens per second           200.0, 10.000 ms between tokens\n"
      "measured bandwidth              10.0 GB/s\n"
      "floor: weights once a step      400.0 tokens per second (0.050 GB); reached 0.500 of it\n"
      "floor: weights and cache        200.0 tokens per second (+ 0.050 GB); reached 1.000 of it\n"
      "memory                          2.500 GB on the device\n");
}

TEST(BenchTables, OfOneTracedStep) {
  StepBench bench{};
  bench.step.median = 0.0125;
  bench.breakdown = StepBreakdown{
      .classes = {{.name = "products", .ops = {{.op = "matmul", .calls = 24, .seconds = 0.006}}},
                  {.name = "norm",
                   .ops = {{.op = "norm_backward", .calls = 5, .seconds = 0.003},
                           {.op = "norm", .calls = 5, .seconds = 0.001}}}},
      .total = 0.0125};
  const std::string table = step_bench_table(bench);
  const size_t begin = table.find("\n\n") + 2;
  EXPECT_EQ(table.substr(begin, table.find("  gaps: ") - begin),
            "  one traced step                         calls           ms       of it\n"
            "  products                                   24        6.000      48.0 %\n"
            "  norm                                       10        4.000      32.0 %\n"
            "    norm_backward                             5        3.000      24.0 %\n"
            "    norm                                      5        1.000       8.0 %\n"
            "  gaps                                                 2.500      20.0 %\n"
            "  traced, first op to last                            12.500     100.0 %\n"
            "  untraced, median                                    12.500\n");
}

}  // namespace
}  // namespace bev
