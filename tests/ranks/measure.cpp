#include "ranks/measure.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "comm/host_communicator.h"
#include "ops/make_device.h"

namespace bev::test {

namespace {

// Of all threads of this process, in user and system mode.
double processor_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

// Of the wall, and of the processors, which other work on the machine does not change.
struct Time {
  double wall = 1e9, processors = 1e9;

  template <class F>
  void improve(const F& call) {
    const auto begin = std::chrono::steady_clock::now();
    const double used = processor_seconds();
    call();
    processors = std::min(processors, processor_seconds() - used);
    wall = std::min(
        wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
};

struct Best {
  Time ours, theirs;
};

// The best of several turns of each, taken alternately: other work on the machine hits both.
template <class F, class G>
Best best_of(int turns, HostCommunicator& world, const F& ours, const G& theirs) {
  Best best;
  for (int i = 0; i < turns; ++i) {
    world.barrier(std::chrono::seconds(60));
    best.ours.improve(ours);
    world.barrier(std::chrono::seconds(60));
    best.theirs.improve(theirs);
  }
  return best;
}

template <class F>
double best_of(int turns, HostCommunicator& world, const F& call) {
  return best_of(turns, world, call, [] {}).ours.wall;
}

}  // namespace

void measure(Rank& self, int64_t megabytes) {
  HostCommunicator world(*self.engine, *self.control);
  std::vector<int> ranks;
  for (int r = 0; r < world.size(); ++r) ranks.push_back(r);
  const auto group = self.engine->group(ranks, "measure");
  const auto device = make_device(DeviceKind::Cpu, 1);
  Arena none{*device, 0, "none"};
  Exec ex{*device, device->compute_stream(), none, none, none};

  const bool speaks = world.rank() == 0;
  if (speaks) std::printf("%d ranks, %s\n", world.size(), self.engine->describe().c_str());
  std::vector<float> values(static_cast<size_t>(megabytes) * 250000);
  const Tensor tensor = tensor_over(reinterpret_cast<std::byte*>(values.data()), DType::f32,
                                    {static_cast<int64_t>(values.size())});
  const Best sums = best_of(
      7, world, [&] { world.all_reduce(ex, tensor); },
      [&] { group->sum(values.data(), values.size()); });
  const double bytes = 4.0 * static_cast<double>(values.size());
  if (speaks) {
    const auto say = [&](const char* who, const Time& time) {
      std::printf("all_reduce of %.0f MB, %s: %.0f MB/s, %.3f s of processors in a rank\n",
                  bytes / 1e6, who, bytes / 1e6 / time.wall, time.processors);
    };
    say("ours", sums.ours);
    say("the library's", sums.theirs);
  }
  const Tensor shard = slice(tensor, 0, 0, static_cast<int64_t>(values.size()) / world.size());
  const Tensor whole = slice(tensor, 0, 0, shard.shape.elements() * world.size());
  std::vector<float> part(static_cast<size_t>(shard.shape.elements()));
  const Tensor apart =
      tensor_over(reinterpret_cast<std::byte*>(part.data()), DType::f32, {shard.shape.elements()});
  const double gather = best_of(5, world, [&] { world.all_gather(ex, apart, whole); });
  const double scatter = best_of(5, world, [&] { world.reduce_scatter(ex, whole, apart); });
  const double root = best_of(5, world, [&] { world.broadcast(ex, tensor, 0); });
  if (speaks) {
    std::printf("all_gather %.0f, reduce_scatter %.0f, broadcast %.0f MB/s\n", bytes / 1e6 / gather,
                bytes / 1e6 / scatter, bytes / 1e6 / root);
  }
  for (const int64_t count : {16, 256, 2048, 4096, 16384, 65536, 262144}) {
    constexpr int kTurns = 20;
    const Tensor small = slice(tensor, 0, 0, count);
    const Best best = best_of(
        15, world,
        [&] {
          for (int i = 0; i < kTurns; ++i) world.all_reduce(ex, small);
        },
        [&] {
          for (int i = 0; i < kTurns; ++i) group->sum(values.data(), static_cast<size_t>(count));
        });
    if (speaks) {
      std::printf("all_reduce of %lld bytes: ours %.1f us, the library's %.1f us\n",
                  static_cast<long long>(4 * count), best.ours.wall / kTurns * 1e6,
                  best.theirs.wall / kTurns * 1e6);
    }
  }
  world.barrier(std::chrono::seconds(60));
}

}  // namespace bev::test
