// Layouts on ranks that are processes: started by any launcher, one process for each rank, it runs
// all layouts of that many ranks and compares each with one rank. The first process prints a line
// for each and, with --table FILE, writes a table of Markdown.
//
//   mpirun -n 4 layout_ranks --device cpu
//   bevatron launch --nproc_per_node 4 -- layout_ranks --device cuda --precision bf16
//
// --tier all: every combination of options instead of a covering few. --only TEXT: the cases whose
// names contain it. --engine NAME: as parallel.backend. Exit code 0: all within bounds; 1: not; 77:
// there is nothing to run it on; 5: a rank failed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "base/check.h"
#include "base/clock.h"
#include "comm/communicator.h"
#include "equivalence/difference_table.h"
#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "launch/process_world.h"
#include "ops/make_device.h"
#include "parallel/parallel_layout.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

constexpr int kSteps = 3;
constexpr int kSkipped = 77;

struct Arguments {
  DeviceKind device = DeviceKind::Reference;
  Precision precision = Precision::F32;
  CommBackend engine = CommBackend::Auto;
  bool all = false;
  std::string only, table;
};

template <class E>
E choice(const std::string& text) {
  for (size_t i = 0; i < EnumNames<E>::names.size(); ++i) {
    if (EnumNames<E>::names[i] == text) return static_cast<E>(i);
  }
  throw Error(ErrorKind::Usage, "there is no choice " + text);
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--device") a.device = choice<DeviceKind>(value);
    if (flag == "--precision") a.precision = choice<Precision>(value);
    if (flag == "--engine") a.engine = choice<CommBackend>(value);
    if (flag == "--tier") a.all = value == "all";
    if (flag == "--only") a.only = value;
    if (flag == "--table") a.table = value;
  }
  return a;
}

std::vector<LayoutCase> cases_for(const Arguments& a, int ranks) {
  std::vector<LayoutCase> cases;
  if (a.device == DeviceKind::Cuda) {
    cases = cuda_layout_cases(a.precision);
  } else {
    cases = quick_layout_cases();
    if (a.all) std::ranges::move(slow_layout_cases(), std::back_inserter(cases));
    if (a.device == DeviceKind::Cpu) {
      for (LayoutCase& c : cases) c = on_cpu(c);
    }
  }
  std::erase_if(cases, [&](const LayoutCase& c) {
    return layout_of(c.many).world() != ranks || c.name.find(a.only) == std::string::npos;
  });
  return cases;
}

Bounds bounds_for(const Arguments& a) {
  if (a.device == DeviceKind::Reference) return kF64;
  if (a.device == DeviceKind::Cpu) return kF32;
  return a.precision == Precision::F32 ? kCudaF32 : kCudaBf16;
}

// Says what is out of bounds, or how large each quantity was.
bool report(const LayoutCase& c, const Comparison& comparison, const Bounds& bounds,
            double seconds) {
  std::map<Quantity, double> worst;
  for (const Difference& d : comparison.all()) {
    if (!(d.ratio <= bounds.of(d.quantity))) {
      fmt::print("FAILED {}: {} in step {} is off by {:.3g}\n", c.name, name_of(d), d.step,
                 d.ratio);
      return false;
    }
    worst[d.quantity] = std::max(worst[d.quantity], d.ratio);
  }
  fmt::print("ok {}: loss {:.1e}, gradient {:.1e}, weight {:.1e}; {:.2f} s\n", c.name,
             worst[Quantity::Loss], worst[Quantity::Gradient], worst[Quantity::Weight], seconds);
  std::fflush(stdout);
  return true;
}

int run(const Arguments& a, ProcessWorld& process, Device& device) {
  const std::unique_ptr<Communicator> world = process.make_world(device);
  const bool is_first = process.rank() == 0;
  if (is_first) fmt::print("{}\n", process.describe());
  const std::vector<LayoutCase> cases = cases_for(a, process.size());
  int failed = 0;
  DifferenceTable table;
  for (const LayoutCase& c : cases) {
    // The others wait for it in the first exchange.
    std::vector<StepOutcome> one;
    if (is_first) one = train_layout(c.one, kSteps);
    const double start = seconds_now();
    world->all_reduce_max_host(0);
    const std::vector<StepOutcome> many = train_layout(c.many, kSteps, device, *world);
    if (!is_first) continue;
    const Comparison comparison = compare_runs(many, one);
    failed += report(c, comparison, bounds_for(a), seconds_now() - start) ? 0 : 1;
    table.add(c.layout, a.device, comparison);
  }
  if (!is_first) return 0;
  fmt::print("{} layouts and options, {} failed\n", cases.size(), failed);
  if (!a.table.empty()) std::ofstream(a.table) << table.markdown();
  return failed > 0 || cases.empty() ? 1 : 0;
}

int main_of_rank(const Arguments& a) {
  const auto environment = rank_environment([](const char* name) { return std::getenv(name); });
  BEV_CHECK(environment.has_value(), Usage, "a launcher is needed, such as mpirun -n 4");
  if (a.device == DeviceKind::Cuda) {
    if (const std::string why = why_no_cuda(); !why.empty()) {
      fmt::print("skipped: {}\n", why);
      return kSkipped;
    }
  }
  ParallelConfig parallel;
  parallel.backend = a.engine;
  ProcessWorld process(
      *environment,
      {.parallel = parallel,
       .note = [](const std::string& text) { fmt::print(stderr, "note: {}\n", text); },
       .on_failure =
           [](const Failure& failure) {
             fmt::print(stderr, "{}\n", failure.text());
             ::_exit(exit_code(ErrorKind::Comm));
           }});
  DeviceConfig config;
  config.kind = a.device;
  config.threads = 1;
  config.autotune = false;
  config.cache = "off";
  config.precision = a.device == DeviceKind::Cuda ? a.precision : Precision::Auto;
  try {
    const std::unique_ptr<Device> device = make_device(config);
    const int code = run(a, process, *device);
    process.finish();
    return code;
  } catch (const std::exception& error) {
    process.control().abort(error.what());
    throw;
  }
}

}  // namespace
}  // namespace bev::test

int main(int argc, char** argv) {
  try {
    return bev::test::main_of_rank(bev::test::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
