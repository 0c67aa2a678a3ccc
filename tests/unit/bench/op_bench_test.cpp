#include "bench/op_bench.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

TEST(OpBench, OnlyWhatWasAskedForAgainstTheMeasuredPeak) {
  Config config = test::tiny_gpt();
  config.device.kind = DeviceKind::Cpu;
  config.device.threads = 1;
  const OpBench bench = bench_ops(config, {"norm_backward", "norm"}, 0);
  ASSERT_EQ(bench.ops.size(), 4u);
  EXPECT_EQ(bench.ops[0].name, "norm");
  for (const OpTiming& op : bench.ops) {
    EXPECT_GT(op.cost.bytes_moved, 0);
    EXPECT_EQ(op.floor, op.cost.bytes_moved / bench.peak.bandwidth);
  }
  EXPECT_GT(bench.ops[2].cost.bytes_moved, bench.ops[1].cost.bytes_moved) << "reads dresidual too";
  EXPECT_GT(bench.ops[3].cost.bytes_moved, bench.ops[2].cost.bytes_moved) << "adds sums of dx too";

  const Json json = Json::parse(op_bench_json(bench));
  EXPECT_EQ(json.at("ops").size(), 4u);
  EXPECT_EQ(json.at("bandwidth_bytes_per_second"), bench.peak.bandwidth);
  EXPECT_NE(op_bench_table(bench).find("14 x 16 + dresidual"), std::string::npos);
}

}  // namespace
}  // namespace bev
