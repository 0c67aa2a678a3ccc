#include "base/format.h"
#include "base/json.h"
#include "base/text_table.h"
#include "bench/step_bench.h"
#include "config/resolve.h"

namespace bev {

namespace {

std::string breakdown_table(const StepBreakdown& b, double untraced) {
  TextTable table("  {:<36} {:>8} {:>12.3f} {:>11}");
  const auto row = [&](std::string_view name, const auto& calls, double seconds) {
    table(name, calls, 1e3 * seconds, format("{:.1f} %", 100 * seconds / b.total));
  };
  table.text = "\n";
  table("one traced step", "calls", "ms", "of it");
  for (const ClassTime& c : b.classes) {
    row(c.name, c.calls(), c.seconds());
    if (c.ops.size() == 1) continue;
    for (const OpTime& time : c.ops) row("  " + time.op, time.calls, time.seconds);
  }
  row("gaps", "", b.gaps());
  row("traced, first op to last", "", b.total);
  table("untraced, median", "", 1e3 * untraced);
  return table.text +
         "  gaps: time of the traced step in no op. The timers between the ops are in it, which an "
         "untraced\n  step does not have. It is one step: what else the machine did is in it "
         "too.\n";
}

Json breakdown_json(const StepBreakdown& b) {
  Json classes = Json::array();
  for (const ClassTime& c : b.classes) {
    Json ops = Json::array();
    for (const OpTime& time : c.ops)
      ops.push_back({{"op", time.op}, {"calls", time.calls}, {"seconds", time.seconds}});
    classes.push_back({{"class", c.name},
                       {"calls", c.calls()},
                       {"seconds", c.seconds()},
                       {"ops", std::move(ops)}});
  }
  return {{"traced_seconds", b.total}, {"gaps_seconds", b.gaps()}, {"classes", std::move(classes)}};
}

}  // namespace

std::string step_bench_table(const StepBench& b) {
  TextTable row("  {:<38} {}");
  row("parameters", with_commas(b.plan.parameters));
  const BatchShape& batch = b.plan.batch;
  row("tokens per step",
      format("{} micro-batches x {} sequences x {}", batch.micros, batch.micro_batch,
             both_sides(batch.sequence, batch.second_sequence)));
  row("start until first step", as_duration(b.seconds_to_first_step));
  if (!b.autotune.empty()) row("before it", b.autotune);
  row("first step", as_duration(b.first_step));
  row("step, median (quartiles) of runs", format("{:.4f} s ({:.4f} - {:.4f}) of {}", b.step.median,
                                                 b.step.low, b.step.high, b.step.runs));
  row("tokens per second", format("{:.1f}", b.tokens_per_second()));
  row("model GFLOP/s",
      format("{:.1f}, {:.1f} % of the measured peak {:.1f}", b.flops_per_second() * 1e-9,
             100 * b.flops_per_second() / b.peak.flops, b.peak.flops * 1e-9));
  if (b.promised_flops > 0) {
    row("MFU", format("{:.2f} % of the {:.0f} TFLOP/s that the GPU promises",
                      100 * b.flops_per_second() / b.promised_flops, b.promised_flops * 1e-12));
  }
  row("measured memory bandwidth", format("{:.1f} GB/s", b.peak.bandwidth * 1e-9));
  if (b.floor) {
    const bool attends = b.floor->attention > 0;
    row(attends ? "floor: products, attention, optimizer" : "floor: products + optimizer bytes",
        format("{:.4f} s = {:.4f} + {}{:.4f}", b.floor->total(), b.floor->gemms,
               attends ? format("{:.4f} + ", b.floor->attention) : "", b.floor->optimizer));
    row("floor in tokens per second",
        format("{:.1f}; reached {:.3f} of it", b.plan.tokens_per_step() / b.floor->total(),
               b.floor->total() / b.step.median));
  }
  row("memory planned, allocated",
      format("{}, {} ({} and {} bytes)", as_bytes(static_cast<double>(b.plan.memory_bytes())),
             as_bytes(static_cast<double>(b.allocated_bytes)), b.plan.memory_bytes(),
             b.allocated_bytes));
  row("memory of the process (VmHWM)",
      format("{}, of which {} before anything was allocated", as_bytes(b.peak_resident_bytes),
             as_bytes(b.resident_before)));
  if (b.breakdown) row.text += breakdown_table(*b.breakdown, b.step.median);
  return row.text;
}

std::string step_bench_json(const StepBench& b) {
  Json json = {{"parameters", b.plan.parameters},
               {"tokens_per_step", b.plan.tokens_per_step()},
               {"micro_batches", b.plan.batch.micros},
               {"seconds_to_first_step", b.seconds_to_first_step},
               {"autotune", b.autotune},
               {"rehearsed", b.autotune},  // earlier name, until 0.2
               {"first_step_seconds", b.first_step},
               {"step_seconds",
                {{"median", b.step.median},
                 {"low", b.step.low},
                 {"high", b.step.high},
                 {"best", b.step.best},
                 {"runs", b.step.runs}}},
               {"tokens_per_second", b.tokens_per_second()},
               {"model_flops_per_second", b.flops_per_second()},
               {"peak_flops_per_second", b.peak.flops},
               {"fraction_of_peak", b.flops_per_second() / b.peak.flops},
               {"bandwidth_bytes_per_second", b.peak.bandwidth},
               {"memory_planned_bytes", b.plan.memory_bytes()},
               {"memory_allocated_bytes", b.allocated_bytes},
               {"memory_process_bytes", b.peak_resident_bytes},
               {"memory_program_bytes", b.resident_before}};
  if (b.promised_flops > 0) {
    json["promised_flops_per_second"] = b.promised_flops;
    json["mfu"] = b.flops_per_second() / b.promised_flops;
  }
  if (b.floor) {
    json["floor_seconds"] = {{"products", b.floor->gemms},
                             {"attention", b.floor->attention},
                             {"optimizer", b.floor->optimizer},
                             {"total", b.floor->total()}};
    json["fraction_of_floor"] = b.floor->total() / b.step.median;
  }
  if (b.breakdown) json["breakdown"] = breakdown_json(*b.breakdown);
  return json.dump(2);
}

}  // namespace bev
