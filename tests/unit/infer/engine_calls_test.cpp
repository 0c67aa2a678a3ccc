// What one rank tells the others about its decoder, and how often it has to.
#include "infer/engine_calls.h"

#include <gtest/gtest.h>

#include "comm/thread_communicator.h"
#include "ops/make_device.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

// Passes everything on; its parts are not counted.
class CountedWorld final : public Communicator {
 public:
  explicit CountedWorld(Communicator& real) : Communicator(real.rank(), real.size()), real_(real) {}
  int64_t all_reduce_max_host(int64_t here) override { return real_.all_reduce_max_host(here); }
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override {
    return real_.split(ranks);
  }

  int broadcasts = 0;
  size_t last_bytes = 0;

 private:
  void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) override {
    real_.all_reduce(ex, inout, op);
  }
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) override {
    real_.all_gather(ex, shard, whole, bounds);
  }
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) override {
    real_.reduce_scatter(ex, whole, bounds, shard);
  }
  void do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) override {
    real_.all_to_all(ex, in, to, out, from);
  }
  void do_broadcast(Exec& ex, Tensor inout, int root) override {
    ++broadcasts;
    last_bytes = bytes_of(inout);
    real_.broadcast(ex, inout, root);
  }
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override {
    return real_.send(ex, tensor, to, channel).number;
  }
  void do_await(Exec& ex, const SendTicket& sent) override { real_.wait_send(ex, sent); }
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override {
    real_.recv(ex, tensor, from, channel);
  }
  void do_barrier(std::chrono::seconds limit) override { real_.barrier(limit); }

  Communicator& real_;
};

constexpr DeviceConfig kDevice{.kind = DeviceKind::Reference, .threads = 1};

// Both see the same broadcasts.
struct Rank {
  CountedWorld& world;
  EngineCalls& calls;
  int taken() { return std::exchange(world.broadcasts, 0); }
};

void with_two_ranks(const EngineLimits& limits, FunctionRef<void(Rank rank)> leads,
                    FunctionRef<void(Rank rank)> follows) {
  run_ranks(2, std::chrono::minutes(1), [&](Communicator& real) {
    CountedWorld world(real);
    const std::unique_ptr<Device> device = make_device(kDevice);
    EngineCalls calls(world, *device, limits);
    (real.rank() == 0 ? leads : follows)({world, calls});
  });
}

using Kind = EngineCall::Kind;

TEST(EngineCalls, AreReceivedAsTheyAreSent) {
  const Ids prompt(2000, 7), text{3, 1, 4}, pages{2, 0, 1};
  const EngineRow drawn{
      .tokens = text, .pages = pages, .choice = {.temperature = 0.5, .top_k = 3}, .key = -5};
  EngineRow penalized = drawn;
  penalized.choice.repetition_penalty = 2;
  const std::vector<EngineRow> both{drawn, penalized};
  with_two_ranks(
      {.rows = 2, .length = 2100, .page = 700},
      [&](Rank rank) {
        rank.calls.send(Kind::Prefill, std::vector<EngineRow>{{.tokens = prompt}, drawn});
        rank.calls.send(Kind::DecodeFurther, both);
        rank.calls.send(Kind::CopyPage, {}, 6, 9);
      },
      [&](Rank rank) {
        const EngineCall first = rank.calls.receive();
        EXPECT_EQ(first.kind, Kind::Prefill);
        ASSERT_EQ(first.rows.size(), 2u);
        EXPECT_EQ(first.rows[0].tokens, prompt);
        EXPECT_EQ(first.rows[1].tokens, text);
        EXPECT_EQ(first.rows[1].pages, pages);
        const EngineCall step = rank.calls.receive();
        EXPECT_EQ(step.kind, Kind::DecodeFurther);
        ASSERT_EQ(step.rows.size(), 2u);
        // Those before the last are in the cache.
        EXPECT_EQ(step.rows[0].tokens, (Ids{0, 0, 4}));
        EXPECT_EQ(step.rows[0].choice.temperature, 0.5);
        EXPECT_EQ(step.rows[0].choice.top_k, 3);
        EXPECT_EQ(step.rows[0].key, -5);
        EXPECT_EQ(step.rows[1].tokens, text);
        const EngineCall copy = rank.calls.receive();
        EXPECT_EQ(copy.kind, Kind::CopyPage);
        EXPECT_TRUE(copy.rows.empty());
        EXPECT_EQ(copy.from, 6);
        EXPECT_EQ(copy.to, 9);
      });
}

TEST(EngineCalls, AStepTakesOneBroadcast) {
  const Ids tokens(99, 1), pages(50, 1);
  const std::vector<EngineRow> rows(20, {.tokens = tokens, .pages = pages});
  with_two_ranks(
      {.rows = 20, .length = 100, .page = 2},
      [&](Rank rank) {
        for (const Kind kind : {Kind::Decode, Kind::DecodeFurther, Kind::Nothing}) {
          rank.calls.send(kind, kind == Kind::Nothing ? std::vector<EngineRow>{} : rows);
          EXPECT_EQ(rank.taken(), 1);
        }
        rank.calls.send(Kind::Prefill, rows);
        EXPECT_EQ(rank.taken(), 2);
        // The second was as long as what was left over.
        EXPECT_EQ(rank.world.last_bytes, 20 * 98 * sizeof(int32_t));
      },
      [](Rank rank) {
        for (int call = 0; call < 4; ++call) rank.calls.receive();
      });
}

TEST(EngineCalls, CollectingIsSentWithTheNextCall) {
  with_two_ranks(
      {.rows = 1, .length = 4, .page = 2},
      [](Rank rank) {
        rank.calls.note_collected();
        rank.calls.note_collected();
        EXPECT_EQ(rank.taken(), 0);
        rank.calls.send(Kind::Nothing);
        rank.calls.send(Kind::Nothing);
      },
      [](Rank rank) {
        EXPECT_EQ(rank.calls.receive().collected, 2);
        EXPECT_EQ(rank.calls.receive().collected, 0);
      });
}

// What is rarely as long as it can be does not make every call long.
TEST(EngineCalls, ShortOnesStayShort) {
  const Ids tokens(1, 5), pages(1000, 3);
  const std::vector<EngineRow> rows(100, {.tokens = tokens, .pages = pages});
  with_two_ranks(
      {.rows = 100, .length = 1000, .page = 1},
      [&](Rank rank) {
        rank.calls.send(Kind::Nothing);
        EXPECT_EQ(rank.taken(), 1);
        EXPECT_LE(rank.world.last_bytes, 65536u);
        rank.calls.send(Kind::Decode, rows);
        EXPECT_EQ(rank.taken(), 2);
      },
      [&](Rank rank) {
        rank.calls.receive();
        const EngineCall call = rank.calls.receive();
        ASSERT_EQ(call.rows.size(), 100u);
        for (const EngineCall::Row& row : call.rows) EXPECT_EQ(row.pages, pages);
      });
}

// A text of a prompt and so many steps costs as many broadcasts, and one for the end.
TEST(EngineCalls, OfALedEngine) {
  const test::StoredModel stored;
  InferenceSetup use{.device = kDevice, .length = 9};
  use.parallel.ranks = use.parallel.tensor = 2;
  run_ranks(2, std::chrono::minutes(1), [&](Communicator& real) {
    CountedWorld world(real);
    const std::unique_ptr<Device> device = make_device(kDevice);
    LoadedModel model(stored.folder(), use, *device, world);
    {
      InferenceEngine decoder(model, {.rows = 1, .length = 9, .page = 3});
      world.broadcasts = 0;
      if (world.rank() != 0) return decoder.follow_leader();
      decoder.lead_ranks();
      Ids tokens{3, 1};
      const Ids pages{2, 0, 1};
      const auto row = [&] { return std::vector<EngineRow>{{.tokens = tokens, .pages = pages}}; };
      decoder.prefill(row());
      for (int step = 0; step < 5; ++step) {
        tokens.push_back(decoder.collect()[0].id);
        decoder.decode(row());
      }
      decoder.collect();
      EXPECT_EQ(world.broadcasts, 1 + 5);
      EXPECT_EQ(decoder.logits().size(), 29u);
      EXPECT_EQ(world.broadcasts, 1 + 5 + 1);
    }
    EXPECT_EQ(world.broadcasts, 1 + 5 + 1 + 1);
  });
}

}  // namespace
}  // namespace bev
