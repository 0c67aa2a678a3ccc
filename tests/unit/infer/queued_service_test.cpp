#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>

#include "base/check.h"
#include "infer/generation_service.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<int32_t>;
using Ticket = std::unique_ptr<GenerationService::Ticket>;

// What came of one request, by any thread.
class Heard {
 public:
  TokenSink sink() {
    return [this](const TokenEvent& event) {
      const std::lock_guard lock(mutex_);
      ++events_;
      if (event.has_token) ids_.push_back(event.token.id);
      finish_ = event.finish;
      changed_.notify_all();
    };
  }
  FinishReason wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [&] { return finish_ != FinishReason::None; });
    return finish_;
  }
  Ids ids() {
    const std::lock_guard lock(mutex_);
    return ids_;
  }
  int events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Ids ids_;
  int events_ = 0;
  FinishReason finish_ = FinishReason::None;
};

// Makes the model wait: the sink of one text that does not return before it is told to. (A sink
// must not block; here it stands for a slow step.)
class Gate {
 public:
  TokenSink sink() {
    return [this](const TokenEvent&) {
      std::unique_lock lock(mutex_);
      is_inside_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, 10s, [&] { return is_open_; });
    };
  }
  void wait_inside() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10s, [&] { return is_inside_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_inside_ = false, is_open_ = false;
};

struct OpRig {
  explicit OpRig(int64_t rows = 2, int64_t waiting = 100)
      : model(stored.load(rows, 9)),
        decoder(model, {.rows = rows, .length = 9, .page = 3}),
        batcher(decoder),
        service(batcher,
                {.rows = rows,
                 .waiting = waiting,
                 .search = [this](std::span<const int32_t> prompt, const SourceText& source,
                                  const BeamOptions& options, FunctionRef<bool()> goes_on) {
                   EXPECT_TRUE(batcher.is_idle());
                   return beam_search(decoder, prompt, source, options, goes_on);
                 }}) {}

  Ticket submit(GenerationRequest request, TokenSink sink, uint64_t group = 1) {
    GenerationService::Answer answer = service.submit(std::move(request), std::move(sink), group);
    EXPECT_EQ(answer.refusal, "");
    return std::move(answer.ticket);
  }

  test::StoredModel stored{};
  LoadedModel model;
  InferenceEngine decoder;
  ContinuousBatcher batcher;
  QueuedService service;
};

GenerationRequest request_of(Ids prompt, int64_t tokens) {
  return {.prompt = std::move(prompt), .tokens = tokens, .choice = {.temperature = 0}};
}

TEST(QueuedService, GivesWhatTheBatcherGives) {
  OpRig rig;
  std::vector<Heard> heard(5);
  std::vector<Ticket> tickets;
  for (int32_t i = 0; i < 5; ++i)
    tickets.push_back(rig.submit(request_of({i, 1, 2}, 4), heard[static_cast<size_t>(i)].sink()));
  for (Heard& each : heard) EXPECT_EQ(each.wait(), FinishReason::Length);
  EXPECT_TRUE(rig.service.drain(10));
  tickets.clear();
  const ServiceCounts counts = rig.service.counts();
  EXPECT_EQ(counts.finished, 5);
  EXPECT_EQ(counts.cancelled, 0);
  EXPECT_EQ(counts.prompt_tokens, 15);
  EXPECT_EQ(counts.generated_tokens, 20);
  EXPECT_EQ(counts.waiting + counts.running, 0);
  EXPECT_EQ(counts.free_pages, counts.pages);
  EXPECT_GT(counts.steps, 0);

  LoadedModel model = rig.stored.load(1, 9);
  InferenceEngine decoder(model, {.rows = 1, .length = 9, .page = 3});
  for (int32_t i = 0; i < 5; ++i) {
    ContinuousBatcher batcher(decoder);
    Ids ids;
    batcher.submit(request_of({i, 1, 2}, 4),
                   [&](const TokenEvent& event) { ids.push_back(event.token.id); });
    while (!batcher.is_idle()) batcher.step();
    EXPECT_EQ(heard[static_cast<size_t>(i)].ids(), ids) << i;
  }
}

TEST(QueuedService, RefusesWhatDoesNotFitAndWhatIsTooMuch) {
  OpRig rig(1, 2);
  const auto refused = rig.service.submit(request_of({1}, 100), [](const TokenEvent&) {}, 1);
  EXPECT_EQ(refused.ticket, nullptr);
  EXPECT_FALSE(refused.is_full);
  EXPECT_NE(refused.refusal.find("what fits"), std::string::npos);

  Gate gate;
  Heard heard[2];
  const Ticket running = rig.submit(request_of({1}, 1), gate.sink());
  gate.wait_inside();
  Ticket waiting[] = {rig.submit(request_of({1}, 1), heard[0].sink()),
                      rig.submit(request_of({1}, 1), heard[1].sink())};
  const auto full = rig.service.submit(request_of({1}, 1), [](const TokenEvent&) {}, 1);
  EXPECT_EQ(full.ticket, nullptr);
  EXPECT_TRUE(full.is_full);
  EXPECT_EQ(rig.service.counts().waiting, 2);
  EXPECT_EQ(rig.service.counts().refused, 2);
  // One that is cancelled makes room at once.
  waiting[0].reset();
  Heard last;
  const Ticket fits = rig.submit(request_of({1}, 1), last.sink());
  gate.open();
  EXPECT_EQ(last.wait(), FinishReason::Length);
  EXPECT_EQ(heard[1].wait(), FinishReason::Length);
  EXPECT_EQ(heard[0].events(), 0);
}

// Many texts of one do not keep another waiting: it is the second to start, not the last.
TEST(QueuedService, GroupsTakeTurns) {
  OpRig rig(1);
  Gate gate;
  const Ticket first = rig.submit(request_of({1}, 1), gate.sink(), 7);
  gate.wait_inside();
  std::mutex mutex;
  std::vector<int> order;
  const auto noting = [&](int number) {
    return [&, number](const TokenEvent&) {
      const std::lock_guard lock(mutex);
      order.push_back(number);
    };
  };
  std::vector<Ticket> tickets;
  for (const int number : {10, 11, 12})
    tickets.push_back(rig.submit(request_of({1}, 1), noting(number), 1));
  for (const int number : {20, 21})
    tickets.push_back(rig.submit(request_of({1}, 1), noting(number), 2));
  tickets.push_back(rig.submit(request_of({1}, 1), noting(30), 3));
  gate.open();
  EXPECT_TRUE(rig.service.drain(10));
  EXPECT_EQ(order, (std::vector<int>{10, 20, 30, 11, 21, 12}));
}

// A search has the model for itself, in its turn.
TEST(QueuedService, SearchesBetweenTexts) {
  OpRig rig(2);
  Gate gate;
  Heard before[2], after[2];
  std::mutex mutex;
  std::vector<Beam> found;
  std::vector<Ticket> tickets;
  tickets.push_back(rig.submit(request_of({1}, 3), gate.sink()));
  gate.wait_inside();
  tickets.push_back(rig.submit(request_of({2}, 6), before[0].sink(), 2));
  auto answer = rig.service.search(
      {3, 4}, {}, {.beams = 2, .tokens = 3},
      [&](const std::vector<Beam>* beams) {
        const std::lock_guard lock(mutex);
        found = *beams;
      },
      3);
  ASSERT_EQ(answer.refusal, "");
  tickets.push_back(rig.submit(request_of({2}, 6), after[0].sink(), 4));
  gate.open();
  EXPECT_TRUE(rig.service.drain(10));
  EXPECT_EQ(before[0].ids(), after[0].ids());
  EXPECT_EQ(before[0].ids().size(), 6U);
  LoadedModel model = rig.stored.load(2, 9);
  InferenceEngine decoder(model, {.rows = 2, .length = 9, .page = 3});
  const std::vector<Beam> expected =
      beam_search(decoder, std::vector<int32_t>{3, 4}, {.beams = 2, .tokens = 3});
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids) << i;
  EXPECT_EQ(rig.service.counts().finished, 4);
}

// A search that takes longer than anybody waits.
QueueOptions::Search long_search() {
  return [](std::span<const int32_t>, const SourceText&, const BeamOptions&,
            FunctionRef<bool()> goes_on) {
    for (int i = 0; i < 15000 && goes_on(); ++i) std::this_thread::sleep_for(1ms);
    return std::vector<Beam>(1);
  };
}

TEST(QueuedService, ASearchThatNobodyWantsEnds) {
  OpRig rig;
  ContinuousBatcher batcher(rig.decoder);
  QueuedService service(batcher, {.rows = 1, .waiting = 1, .search = long_search()});
  std::atomic<bool> is_heard{false};
  auto answer = service.search(
      {1}, {}, {.beams = 1, .tokens = 1}, [&](const std::vector<Beam>*) { is_heard = true; }, 1);
  ASSERT_EQ(answer.refusal, "");
  // Meanwhile it is seen to get on.
  for (int i = 0; i < 10000 && service.counts().steps < 3; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(service.counts().steps, 3);
  EXPECT_EQ(service.counts().running, 1);
  EXPECT_FALSE(service.drain(0));
  answer.ticket.reset();
  EXPECT_TRUE(service.drain(10));
  EXPECT_FALSE(is_heard);
}

TEST(QueuedService, RefusesSearchesThatDoNotFit) {
  OpRig rig(2);
  const auto why = [&](int64_t beams, int64_t tokens) {
    return rig.service
        .search(
            {1}, {}, {.beams = beams, .tokens = tokens}, [](const std::vector<Beam>*) {}, 1)
        .refusal;
  };
  EXPECT_NE(why(3, 2).find("1 to 2 beams"), std::string::npos);
  EXPECT_NE(why(0, 2), "");
  EXPECT_NE(why(2, 0), "");
  EXPECT_NE(why(1, 100).find("what fits"), std::string::npos);
  // Two of three pages each, and one more: the cache has six.
  EXPECT_NE(why(2, 8).find("8 pages"), std::string::npos);
  EXPECT_EQ(why(2, 5), "");
}

TEST(QueuedService, NothingIsHeardOfWhatIsCancelled) {
  OpRig rig(2);
  Gate gate;
  Heard heard;
  const Ticket slow = rig.submit(request_of({1}, 5), gate.sink());
  gate.wait_inside();
  Ticket gone = rig.submit(request_of({1}, 5), heard.sink());
  gone.reset();
  gate.open();
  EXPECT_TRUE(rig.service.drain(10));
  EXPECT_EQ(heard.events(), 0);
  EXPECT_EQ(rig.service.counts().cancelled, 1);
  EXPECT_EQ(rig.service.counts().free_pages, rig.service.counts().pages);
}

TEST(QueuedService, CancellingWhatRunsFreesItsPages) {
  OpRig rig(1);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> events{0};
    Ticket ticket = rig.submit(request_of({1, 2}, 7), [&](const TokenEvent&) { ++events; });
    while (events == 0) std::this_thread::yield();
    ticket.reset();
    const int after = events;
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(events, after);
  }
  EXPECT_TRUE(rig.service.drain(10));
  EXPECT_EQ(rig.service.counts().free_pages, rig.service.counts().pages);
}

TEST(QueuedService, DrainingTakesNothingNew) {
  OpRig rig(1);
  Gate gate;
  const Ticket slow = rig.submit(request_of({1}, 1), gate.sink());
  gate.wait_inside();
  EXPECT_FALSE(rig.service.drain(0.01));
  const auto refused = rig.service.submit(request_of({1}, 1), [](const TokenEvent&) {}, 1);
  EXPECT_EQ(refused.ticket, nullptr);
  gate.open();
  EXPECT_TRUE(rig.service.drain(10));
}

TEST(QueuedService, AFailureIsToldToAll) {
  OpRig rig(2);
  Gate gate;
  Heard heard[2];
  // A sink that throws stands for a model that does.
  const Ticket first = rig.submit(request_of({1}, 3), [&](const TokenEvent& event) {
    gate.sink()(event);
    if (event.finish == FinishReason::None) throw Error(ErrorKind::Device, "the device is gone");
  });
  gate.wait_inside();
  const Ticket running = rig.submit(request_of({1}, 3), heard[0].sink());
  const Ticket waiting = rig.submit(request_of({1}, 3), heard[1].sink());
  EXPECT_EQ(rig.service.failure(), "");
  gate.open();
  EXPECT_EQ(heard[0].wait(), FinishReason::Failed);
  EXPECT_EQ(heard[1].wait(), FinishReason::Failed);
  EXPECT_NE(rig.service.failure().find("the device is gone"), std::string::npos);
  EXPECT_NE(rig.service.error(), nullptr);
  const auto refused = rig.service.submit(request_of({1}, 1), [](const TokenEvent&) {}, 1);
  EXPECT_EQ(refused.ticket, nullptr);
  EXPECT_NE(refused.refusal.find("the device is gone"), std::string::npos);
  EXPECT_TRUE(rig.service.drain(0));
}

}  // namespace
}  // namespace bev
