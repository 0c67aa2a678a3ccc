#include "bench/op_bench.h"

#include <algorithm>

#include "bench/op_cases.h"
#include "ops/make_device.h"

namespace bev {

OpBench bench_ops(const Config& config, const std::vector<std::string>& only, double seconds_each) {
  std::vector<BenchedOp> wanted;
  for (const BenchedOp& op : benched_ops()) {
    if (only.empty() || std::find(only.begin(), only.end(), op.name) != only.end())
      wanted.push_back(op);
  }
  const std::unique_ptr<Device> device = make_device(config.device);
  OpBench result{.peak = measure_peak(*device), .ops = {}};
  // The operands of one op at a time.
  Rig rig(*device, rig_sizes(*device, [&](Rig& rehearsal) {
    for (const BenchedOp& op : wanted) {
      for (const OpCase& c : op.cases({rehearsal, config})) c.run(rehearsal.exec());
      rehearsal.clear();
    }
  }));
  for (const BenchedOp& op : wanted) {
    for (const OpCase& c : op.cases({rig, config})) {
      OpTiming timing{.name = std::string(op.name), .shape = c.shape};
      rig.exec().cost = &timing.cost;
      c.run(rig.exec());
      rig.exec().cost = nullptr;
      timing.time = measure_on(*device, [&] { c.run(rig.exec()); }, seconds_each, 5);
      timing.floor = std::max(timing.cost.flops / result.peak.flops,
                              timing.cost.bytes_moved / result.peak.bandwidth);
      result.ops.push_back(std::move(timing));
    }
    rig.clear();
  }
  return result;
}

}  // namespace bev
