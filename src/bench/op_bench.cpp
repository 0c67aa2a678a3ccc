#include "bench/op_bench.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/text_table.h"
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
  OpRig rig(*device, rig_sizes(*device, [&](OpRig& dry_run) {
    for (const BenchedOp& op : wanted) {
      for (const OpCase& c : op.cases({dry_run, config})) c.run(dry_run.exec());
      dry_run.clear();
    }
  }));
  for (const BenchedOp& op : wanted) {
    for (const OpCase& c : op.cases({rig, config})) {
      OpTiming timing{.name = std::string(op.name), .shape = c.shape};
      CostLog log;
      rig.exec().cost = &log;
      c.run(rig.exec());
      rig.exec().cost = nullptr;
      timing.cost = total_of(log.records());
      timing.time = measure_on(*device, [&] { c.run(rig.exec()); }, seconds_each, 5);
      timing.floor = std::max(timing.cost.flops / result.peak.flops,
                              timing.cost.bytes_moved / result.peak.bandwidth);
      result.ops.push_back(std::move(timing));
    }
    rig.clear();
  }
  return result;
}

std::string op_bench_table(const OpBench& bench) {
  size_t widest = 1;
  for (const OpTiming& r : bench.ops) widest = std::max(widest, r.shape.size());
  TextTable row("{:<18} {:<*} {:>10.1f} {:>9.1f} {:>9.1f} {:>8.1f} {:>9.2f}", widest);
  row("op", "shape", "median us", "spread %", "GFLOP/s", "GB/s", "of floor");
  bool batched = false;
  for (const OpTiming& r : bench.ops) {
    row(r.name, r.shape, 1e6 * r.time.median, 100 * (r.time.high - r.time.low) / r.time.median,
        r.cost.flops / r.time.median * 1e-9, r.cost.bytes_moved / r.time.median * 1e-9,
        r.floor / r.time.median);
    batched = batched || r.time.calls > 1;
  }
  row.text += format(
      "floor: the FLOP at {:.1f} GFLOP/s or the bytes at {:.1f} GB/s, whichever takes longer; both "
      "rates were measured in this run\n",
      bench.peak.flops * 1e-9, bench.peak.bandwidth * 1e-9);
  if (batched) {
    row.text +=
        "times are of one call: a run makes as many as take some milliseconds, waits for the "
        "device once and is divided by them\n";
  }
  return row.text;
}

std::string op_bench_json(const OpBench& bench) {
  Json list = Json::array();
  for (const OpTiming& r : bench.ops) {
    list.push_back({{"op", r.name},
                    {"shape", r.shape},
                    {"median_seconds", r.time.median},
                    {"low_seconds", r.time.low},
                    {"high_seconds", r.time.high},
                    {"runs", r.time.runs},
                    {"calls_per_run", r.time.calls},
                    {"flops", r.cost.flops},
                    {"bytes", r.cost.bytes_moved},
                    {"fraction_of_floor", r.floor / r.time.median}});
  }
  return Json{{"peak_flops_per_second", bench.peak.flops},
              {"bandwidth_bytes_per_second", bench.peak.bandwidth},
              {"ops", std::move(list)}}
      .dump(2);
}

}  // namespace bev
