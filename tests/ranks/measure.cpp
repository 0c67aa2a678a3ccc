#include "ranks/measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "comm/host.h"
#include "ops/make_device.h"

namespace bev::test {

namespace {

template <class F>
double seconds_of(const F& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The best of several.
template <class F>
double best_of(int times, HostCommunicator& world, const F& call) {
  double best = 1e9;
  for (int i = 0; i < times; ++i) {
    world.barrier(std::chrono::seconds(60));
    best = std::min(best, seconds_of(call));
  }
  return best;
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
  const double ours = best_of(5, world, [&] { world.all_reduce(ex, tensor); });
  const double theirs = best_of(5, world, [&] { group->sum(values.data(), values.size()); });
  const double bytes = 4.0 * static_cast<double>(values.size());
  if (speaks) {
    std::printf("all_reduce of %.0f MB: ours %.0f MB/s, the library's %.0f MB/s\n", bytes / 1e6,
                bytes / 1e6 / ours, bytes / 1e6 / theirs);
  }
  const Tensor shard = slice(tensor, 0, 0, static_cast<int64_t>(values.size()) / world.size());
  const Tensor whole = slice(tensor, 0, 0, shard.shape.elements() * world.size());
  std::vector<float> part(static_cast<size_t>(shard.shape.elements()));
  const Tensor apart =
      tensor_over(reinterpret_cast<std::byte*>(part.data()), DType::f32, {shard.shape.elements()});
  const double gather = best_of(3, world, [&] { world.all_gather(ex, apart, whole); });
  const double scatter = best_of(3, world, [&] { world.reduce_scatter(ex, whole, apart); });
  const double root = best_of(3, world, [&] { world.broadcast(ex, tensor, 0); });
  if (speaks) {
    std::printf("all_gather %.0f, reduce_scatter %.0f, broadcast %.0f MB/s\n", bytes / 1e6 / gather,
                bytes / 1e6 / scatter, bytes / 1e6 / root);
  }
  for (const int64_t count : {16, 256, 2048, 4096, 16384, 65536, 262144}) {
    constexpr int kTurns = 200;
    const Tensor small = slice(tensor, 0, 0, count);
    const double own = best_of(5, world, [&] {
      for (int i = 0; i < kTurns; ++i) world.all_reduce(ex, small);
    });
    const double other = best_of(5, world, [&] {
      for (int i = 0; i < kTurns; ++i) group->sum(values.data(), static_cast<size_t>(count));
    });
    if (speaks) {
      std::printf("all_reduce of %lld bytes: ours %.1f us, the library's %.1f us\n",
                  static_cast<long long>(4 * count), own / kTurns * 1e6, other / kTurns * 1e6);
    }
  }
  world.barrier(std::chrono::seconds(60));
}

}  // namespace bev::test
