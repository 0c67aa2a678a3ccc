// What was sent stays as it is until it is awaited: nobody may have read it before.
#include "pipeline/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "data/data_loader.h"
#include "data/mock_dataset.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/layout_name.h"
#include "support/tiny_models.h"
#include "support/two_state_models.h"
#include "train/training_state.h"
#include "verify/layout_name.h"

namespace bev::test {
namespace {

struct Sending {
  const std::byte* data;
  std::vector<std::byte> bytes;  // as they were
  bool awaited = false;
};

// What a rank has sent along all its axes.
struct SentLog {
  std::deque<Sending> all;
  double received = 0;
};

// A rank without peers: it receives numbers that are never the same, and nobody takes what it sends
// before it waits for that.
class WatchingCommunicator final : public Communicator {
 public:
  WatchingCommunicator(int rank, int size, SentLog& log) : Communicator(rank, size), log_(log) {}
  int64_t all_reduce_max_host(int64_t here) override { return here; }
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank());
    return std::make_unique<WatchingCommunicator>(static_cast<int>(mine - ranks.begin()),
                                                  static_cast<int>(ranks.size()), log_);
  }

 private:
  void do_all_reduce(Exec&, Tensor, ReduceOp) override {}
  // As if all ranks had the same.
  void do_all_gather(Exec&, ConstTensor shard, Tensor whole, Counts) override {
    for (int r = 0; r < size(); ++r)
      std::memcpy(whole.data + static_cast<size_t>(r) * bytes_of(shard), shard.data,
                  bytes_of(shard));
  }
  void do_reduce_scatter(Exec&, ConstTensor, Counts, Tensor) override {}
  void do_all_to_all(Exec&, ConstTensor, Counts, Tensor, Counts) override {}
  void do_broadcast(Exec&, Tensor, int) override {}
  void do_barrier(std::chrono::seconds) override {}

  uint64_t do_send(Exec&, ConstTensor tensor, int, Channel) override {
    log_.all.push_back({tensor.data, {tensor.data, tensor.data + bytes_of(tensor)}});
    return log_.all.size();
  }
  void do_await(Exec&, const SendTicket& sent) override {
    Sending& sending = log_.all[sent.number - 1];
    EXPECT_EQ(std::memcmp(sending.data, sending.bytes.data(), sending.bytes.size()), 0)
        << "message " << sent.number << " has changed on its way";
    sending.awaited = true;
  }
  void do_recv(Exec&, Tensor tensor, int, Channel) override {
    auto* values = reinterpret_cast<double*>(tensor.data);
    for (int64_t i = 0; i < tensor.shape.elements(); ++i) values[i] = 1 / ++log_.received;
  }

  SentLog& log_;
};

class ExecutorSends : public ::testing::TestWithParam<const char*> {};

TEST_P(ExecutorSends, StayUntilTheyAreAwaited) {
  Config config = tiny_gpt();
  config.parallel = parse_layout(GetParam());
  config.model.layers = std::max<int64_t>(3, config.parallel.pipeline * config.parallel.chunks);
  config.train.micro_batch = 1;
  config.train.global_batch = 8;
  // Gradients replace inputs of which tensor ranks keep parts.
  const ParallelLayout layout = layout_of(config);
  if (layout.tensor > 1) config.recompute = {.granularity = Recompute::Full, .distribute = true};
  constexpr std::array kSpecs{model_spec, two_towers, encoder_decoder};
  for (size_t i = 0; i < kSpecs.size() * static_cast<size_t>(layout.world()); ++i) {
    const int rank = static_cast<int>(i / kSpecs.size());
    const ModelOptions options{.spec = kSpecs[i % kSpecs.size()]};
    SCOPED_TRACE(i);
    const Plan plan = dry_run(config, {.rank = rank, .model = options});
    const std::unique_ptr<Device> device = make_device(config.device);
    SentLog log;
    WatchingCommunicator world(rank, layout.world(), log);
    ProcessGroups groups(layout, world);
    TrainingState assembly(config, *device, groups, plan.arenas, options);
    assembly.initialize();
    DataLoader loader(
        std::make_shared<MockDataset>(plan.model.vocab, 7),
        DataLoader::shape_of(config, assembly.spec.batch, groups.coordinate(Axis::Data)));
    const auto batches = loader.next();
    assembly.executor.train(batches);
    EXPECT_GE(log.all.size(), 8U);
    assembly.executor.evaluate(batches);
    for (size_t m = 0; m < log.all.size(); ++m) EXPECT_TRUE(log.all[m].awaited) << m + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ExecutorSends,
                         ::testing::Values("pp2", "pp4", "pp2.gpipe", "pp2.zero-bubble",
                                           "pp2.chunks2", "pp2.chunks3", "tp2.pp2",
                                           "tp2.pp2.zero-bubble", "tp2.pp2.chunks2"),
                         [](const auto& layout) { return layout_name(layout.param); });

}  // namespace
}  // namespace bev::test
