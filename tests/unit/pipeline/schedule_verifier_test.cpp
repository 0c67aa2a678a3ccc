// A verifier that has never refused is not yet one: each test plants a fault and expects its name.
#include "pipeline/schedule_verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "pipeline/schedule.h"

namespace bev {
namespace {

using Programs = std::vector<Program>;

constexpr PipelineShape kShape{3, 1, 5};

std::string refusal(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Internal);
    return error.what();
  }
  return "accepted";
}

std::string refusal_of(const Programs& programs, const PipelineShape& shape = kShape) {
  return refusal([&] { verify_schedule(programs, shape); });
}

void expect_words(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in: " << text;
  }
}

Programs good(ScheduleKind kind = ScheduleKind::OneFOneB) { return build_schedule(kind, kShape); }

Program::iterator find(Program& program, Act act, uint32_t micro) {
  const auto found = std::find_if(program.begin(), program.end(), [&](const Instr& instr) {
    return instr.act == act && instr.micro == micro;
  });
  EXPECT_NE(found, program.end());
  return found;
}

TEST(ScheduleVerify, ReceiveSwappedWithTheNextInstruction) {
  Programs programs = good();
  const auto receive = find(programs[1], Act::RecvForward, 2);
  std::swap(*receive, *(receive + 1));
  expect_words(refusal_of(programs),
               {"rank 1", "Forward of micro-batch 2", "before its RecvForward"});
}

TEST(ScheduleVerify, ReceivesOfTwoMicroBatchesSwapped) {
  Programs programs = good(ScheduleKind::GPipe);
  std::swap(*find(programs[1], Act::RecvBackward, 2), *find(programs[1], Act::RecvBackward, 3));
  expect_words(refusal_of(programs),
               {"rank 1", "Backward of micro-batch 2", "before its RecvBackward"});
}

TEST(ScheduleVerify, DroppedSends) {
  for (const ScheduleKind kind : {ScheduleKind::OneFOneB, ScheduleKind::ZeroBubble}) {
    for (const Act act : {Act::SendForward, Act::SendBackward}) {
      for (uint32_t micro = 0; micro < 5; ++micro) {
        Programs programs = good(kind);
        programs[1].erase(find(programs[1], act, micro));
        expect_words(refusal_of(programs), {"rank 1", std::string(name_of(act))});
      }
    }
  }
}

TEST(ScheduleVerify, DroppedReceives) {
  Programs programs = good();
  programs[2].erase(find(programs[2], Act::RecvForward, 4));
  expect_words(refusal_of(programs), {"rank 2", "micro-batch 4", "before its RecvForward"});
  programs = good();
  programs[0].erase(find(programs[0], Act::RecvBackward, 1));
  expect_words(refusal_of(programs), {"rank 0", "micro-batch 1", "before its RecvBackward"});
}

TEST(ScheduleVerify, ForgottenWeightGradient) {
  Programs programs = good(ScheduleKind::ZeroBubble);
  programs[2].erase(find(programs[2], Act::BackwardWeight, 4));
  expect_words(refusal_of(programs), {"rank 2", "micro-batch 4", "has no BackwardWeight"});
  programs = good(ScheduleKind::ZeroBubble);
  programs[2].erase(find(programs[2], Act::BackwardWeight, 0));
  expect_words(refusal_of(programs), {"rank 2", "reused while micro-batch 0", "BackwardWeight"});
}

TEST(ScheduleVerify, WeightGradientBeforeTheInputs) {
  Programs programs = good(ScheduleKind::ZeroBubble);
  std::swap(*find(programs[0], Act::BackwardInput, 0), *find(programs[0], Act::BackwardWeight, 0));
  expect_words(refusal_of(programs), {"rank 0", "BackwardWeight", "before its BackwardInput"});
}

TEST(ScheduleVerify, DoubledForward) {
  Programs programs = good();
  const auto forward = find(programs[1], Act::Forward, 3);
  programs[1].insert(forward, *forward);
  expect_words(refusal_of(programs), {"rank 1", "Forward of micro-batch 3", "a second time"});
}

TEST(ScheduleVerify, WholeBackwardAfterItsHalf) {
  Programs programs = good(ScheduleKind::ZeroBubble);
  find(programs[1], Act::BackwardWeight, 2)->act = Act::Backward;
  expect_words(refusal_of(programs), {"rank 1", "Backward of micro-batch 2", "a second time"});
}

TEST(ScheduleVerify, SlotReusedEarly) {
  Programs programs = good();
  for (Instr& instr : programs[0]) {
    if (instr.micro == 1) instr.slot = 0;
  }
  expect_words(refusal_of(programs), {"rank 0", "Load of micro-batch 1", "slot is reused",
                                      "micro-batch 0 still needs its RecvBackward"});
}

TEST(ScheduleVerify, SlotOfAnotherMicroBatch) {
  Programs programs = good();
  find(programs[0], Act::Forward, 1)->slot = 0;
  expect_words(refusal_of(programs), {"rank 0", "Forward of micro-batch 1", "not in this slot"});
}

TEST(ScheduleVerify, BackwardBeforeItsForward) {
  Programs programs = good();
  std::swap(*find(programs[2], Act::Forward, 0), *find(programs[2], Act::Backward, 0));
  expect_words(refusal_of(programs), {"rank 2", "Backward of micro-batch 0", "before its Forward"});
}

// Legal on each rank by itself, but rank 1 takes the second micro-batch first.
TEST(ScheduleVerify, ChannelOutOfOrder) {
  Programs programs = good(ScheduleKind::GPipe);
  for (Instr& instr : programs[1]) {
    if (instr.micro < 2) instr.micro = 1 - instr.micro;
  }
  expect_words(refusal_of(programs), {"rank 1", "RecvForward of micro-batch 1", "out of order",
                                      "forward channel from rank 0 delivers micro-batch 0"});
}

// Two ranks and two chunks: activations go both ways, each in a pipe of its own.
TEST(ScheduleVerify, ChunksOutOfOrder) {
  const PipelineShape shape{2, 2, 4};
  Programs programs = build_schedule(ScheduleKind::Interleaved, shape);
  EXPECT_NO_THROW(verify_schedule(programs, shape));
  // Rank 0 computes micro-batch 1 of chunk 1 before that of 0.
  for (Instr& instr : programs[0]) {
    if (instr.chunk == 1 && instr.micro < 2) instr.micro = 1 - instr.micro;
  }
  expect_words(refusal_of(programs, shape), {"rank 0", "out of order", "channel from rank 1"});
}

TEST(ScheduleVerify, ProgramsSwappedBetweenRanks) {
  for (const ScheduleKind kind :
       {ScheduleKind::GPipe, ScheduleKind::OneFOneB, ScheduleKind::ZeroBubble}) {
    Programs programs = good(kind);
    std::swap(programs[0], programs[2]);
    expect_words(refusal_of(programs), {"rank 0", "stage 0 of 0 to 2 has no RecvForward"});
    programs = good(kind);
    std::swap(programs[1], programs[2]);
    expect_words(refusal_of(programs), {"rank 1", "before its SendForward"});
  }
}

// Each rank is legal by itself: the first wants a gradient before it sends what the second needs.
TEST(ScheduleVerify, RanksThatWaitForEachOther) {
  const PipelineShape shape{2, 1, 2};
  Programs programs = build_schedule(ScheduleKind::GPipe, shape);
  const Program alone = build_schedule(ScheduleKind::OneFOneB, {.micros = 2}).front();
  programs[0].clear();
  for (const Instr& instr : alone) {
    if (instr.act == Act::Backward) programs[0].push_back({Act::RecvBackward, 0, instr.micro, 0});
    programs[0].push_back(instr);
    if (instr.act == Act::Forward) programs[0].push_back({Act::SendForward, 0, instr.micro, 0});
  }
  expect_words(refusal_of(programs, shape),
               {"deadlocks", "rank 0, instruction 3 (RecvBackward of micro-batch 0",
                "waits for rank 1 on the backward channel",
                "rank 1, instruction 4 (RecvForward of micro-batch 1",
                "waits for rank 0 on the forward channel"});
}

// Forwards chunk by chunk with one slot in each: every rank is legal by itself, and every receive
// finds its message, but both wait for the other to make room.
Program chunk_by_chunk(const PipelineShape& shape, int rank) {
  Program program;
  for (uint16_t chunk = 0; chunk < shape.chunks; ++chunk) {
    const int stage = shape.stage(rank, chunk);
    for (uint32_t micro = 0; micro < shape.micros; ++micro) {
      program.push_back({Act::Load, chunk, micro, 0});
      if (stage > 0) program.push_back({Act::RecvForward, chunk, micro, 0});
      program.push_back({Act::Forward, chunk, micro, 0});
      if (stage < shape.last_stage()) program.push_back({Act::SendForward, chunk, micro, 0});
    }
  }
  return program;
}

TEST(ScheduleVerify, RanksThatWaitForEachOthersSlots) {
  const PipelineShape shape{2, 2, 3};
  Programs programs{chunk_by_chunk(shape, 0), chunk_by_chunk(shape, 1)};
  expect_words(refusal([&] { verify_schedule(programs, shape, {}, false); }),
               {"deadlocks", "rank 0, instruction 6 (Load of micro-batch 2, chunk 0, slot 0)",
                "waits until rank 1 takes what the slot has sent on the forward channel",
                "rank 1, instruction 4 (Load of micro-batch 1, chunk 0, slot 0)",
                "waits until rank 0 takes"});
  for (Instr& instr : programs[1]) instr.slot = static_cast<uint16_t>(instr.micro);
  EXPECT_NO_THROW(verify_schedule(programs, shape, {}, false));
}

TEST(ScheduleVerify, MicroBatchLeftOut) {
  Programs programs = build_schedule(ScheduleKind::OneFOneB, {3, 1, 4});
  expect_words(refusal_of(programs), {"rank 0", "micro-batch 4", "has no Load"});
  programs = build_schedule(ScheduleKind::OneFOneB, {3, 1, 6});
  expect_words(refusal_of(programs), {"micro-batch 5", "5 micro-batches"});
}

TEST(ScheduleVerify, RankLeftOut) {
  Programs programs = good();
  programs.pop_back();
  expect_words(refusal_of(programs), {"2 programs for 3 pipeline ranks"});
}

TEST(ScheduleVerify, BackwardInAnEvaluation) {
  expect_words(refusal([] { verify_schedule(good(), kShape, {}, false); }),
               {"rank 0", "has no RecvBackward here"});
}

// The simulation by itself, for programs that nobody has checked rank by rank.
TEST(ScheduleSimulation, LeftInAChannel) {
  Programs programs = forward_only(kShape);
  programs[1].erase(find(programs[1], Act::RecvForward, 4));
  expect_words(refusal([&] { simulate(programs, kShape); }),
               {"micro-batch 4", "left in the forward channel from rank 0", "rank 1 never"});
}

TEST(ScheduleSimulation, SendThatNobodyPosts) {
  Programs programs = forward_only(kShape);
  programs[0].erase(find(programs[0], Act::SendForward, 4));
  expect_words(refusal([&] { simulate(programs, kShape); }),
               {"deadlocks", "rank 1", "RecvForward of micro-batch 4"});
}

std::vector<double> begins(const SimulatedSchedule& simulation, size_t rank) {
  std::vector<double> times;
  for (const TimedInstr& timed : simulation.ranks[rank]) times.push_back(timed.begin);
  return times;
}

// The last rank takes twice as long as the first, whose third micro-batch therefore waits for the
// memory of the second, unless it has some of its own.
TEST(ScheduleSimulation, LoadsWaitUntilTheOutputIsReceived) {
  const PipelineShape shape{2, 1, 3};
  const auto begins_with = [&](uint32_t slots) {
    Programs programs = forward_only(shape);
    for (Instr& instr : programs[0]) instr.slot = static_cast<uint16_t>(instr.micro % slots);
    for (Instr& instr : programs[1])
      if (instr.act == Act::Forward) instr.act = Act::Backward;
    return begins(simulate(programs, shape), 0);
  };
  EXPECT_EQ(begins_with(2), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(begins_with(1), (std::vector<double>{0, 1, 3}));
}

// When the last of two ranks computes, if it has so many slots. The first takes no gradient before
// its last forward has ended, at 6.
std::vector<double> begins_before_a_late_rank(PipelineShape shape, uint32_t slots) {
  shape.ranks = 2;
  shape.micros = 6;
  Programs programs = build_schedule(ScheduleKind::OneFOneB, shape);
  programs[0] = build_schedule(ScheduleKind::GPipe, shape)[0];
  for (Instr& instr : programs[1]) instr.slot = static_cast<uint16_t>(instr.micro % slots);
  return begins(simulate(programs, shape), 1);
}

TEST(ScheduleSimulation, BackwardsWaitUntilTheGradientBeforeIsReceived) {
  EXPECT_EQ(begins_before_a_late_rank({}, 2)[3], 5);
  EXPECT_EQ(begins_before_a_late_rank({}, 1)[3], 6);
}

// The second input may not come to where the first gradient still is.
TEST(ScheduleSimulation, ReceivesWaitForTheGradientThatReplacedAnInput) {
  const PipelineShape replacing{.gradient_replaces_input = true};
  EXPECT_EQ(begins_before_a_late_rank({}, 1)[2], 4);
  EXPECT_EQ(begins_before_a_late_rank(replacing, 2)[2], 4);
  EXPECT_EQ(begins_before_a_late_rank(replacing, 1)[2], 6);
}

TEST(ScheduleSimulation, ReceivesWaitForTheirSends) {
  const PipelineShape shape{2, 1, 1};
  const SimulatedSchedule simulation =
      simulate(build_schedule(ScheduleKind::OneFOneB, shape), shape,
               std::vector<StageCosts>(2, {.forward = 2, .backward_input = 3}));
  EXPECT_EQ(simulation.ranks[0][0].end, 2);
  EXPECT_EQ(simulation.ranks[1][0].begin, 2);
  EXPECT_EQ(simulation.ranks[1][1].end, 8);
  EXPECT_EQ(simulation.ranks[0][1].begin, 8);
  EXPECT_EQ(simulation.end, 12);
  EXPECT_DOUBLE_EQ(simulation.bubble(), 1);
}

std::vector<std::pair<double, double>> spans(const SimulatedSchedule& simulation, size_t rank) {
  std::vector<std::pair<double, double>> times;
  for (const TimedInstr& timed : simulation.ranks[rank]) times.emplace_back(timed.begin, timed.end);
  return times;
}

using Spans = std::vector<std::pair<double, double>>;

// By hand: F of 1 and 3, B of 2 + 1 and 4 + 1. Fails when a stage has the costs of another.
TEST(ScheduleSimulation, StagesHaveTheirOwnCosts) {
  const PipelineShape shape{2, 1, 2};
  const std::vector<StageCosts> stages{{.forward = 1, .backward_input = 2, .backward_weight = 1},
                                       {.forward = 3, .backward_input = 4, .backward_weight = 1}};
  const SimulatedSchedule s =
      simulate(build_schedule(ScheduleKind::OneFOneB, shape), shape, stages);
  EXPECT_EQ(spans(s, 1), (Spans{{1, 4}, {4, 9}, {9, 12}, {12, 17}}));
  EXPECT_EQ(spans(s, 0), (Spans{{0, 1}, {1, 2}, {9, 12}, {17, 20}}));
  EXPECT_EQ(s.end, 20);
  EXPECT_DOUBLE_EQ(s.bubble(), 2 * 20.0 / 24 - 1);
}

// Two chunks on each of two ranks: stage 2 is the second of rank 0.
TEST(ScheduleSimulation, CostsAreByStageNotByRank) {
  const PipelineShape shape{2, 2, 1};
  const std::vector<StageCosts> stages{
      {.forward = 1}, {.forward = 2}, {.forward = 4}, {.forward = 8}};
  const SimulatedSchedule s = simulate(forward_only(shape), shape, stages);
  EXPECT_EQ(spans(s, 0), (Spans{{0, 1}, {3, 7}}));
  EXPECT_EQ(spans(s, 1), (Spans{{1, 3}, {7, 15}}));
}

// By hand: the output arrives 5 after its send, the gradient 7. Fails when a transfer is free, or
// takes the time of the other direction.
TEST(ScheduleSimulation, TransfersDelayReceives) {
  const PipelineShape shape{2, 1, 1};
  const std::vector<StageCosts> stages{{.send_forward = 5, .send_backward = 100},
                                       {.send_forward = 100, .send_backward = 7}};
  const SimulatedSchedule s =
      simulate(build_schedule(ScheduleKind::OneFOneB, shape), shape, stages);
  EXPECT_EQ(spans(s, 0), (Spans{{0, 1}, {16, 18}}));
  EXPECT_EQ(spans(s, 1), (Spans{{6, 7}, {7, 9}}));
}

// The sender computes on while its messages travel, one after the other.
TEST(ScheduleSimulation, TransfersOfAPipeFollowEachOther) {
  const PipelineShape shape{2, 1, 3};
  const std::vector<StageCosts> stages{{.send_forward = 4}, {}};
  Programs programs = forward_only(shape);
  for (Instr& instr : programs[0]) instr.slot = static_cast<uint16_t>(instr.micro);
  const SimulatedSchedule s = simulate(programs, shape, stages);
  EXPECT_EQ(begins(s, 0), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(begins(s, 1), (std::vector<double>{5, 9, 13}));
}

TEST(ScheduleSimulation, CostsOfTooFewStages) {
  const PipelineShape shape{2, 2, 1};
  expect_words(refusal([&] { simulate(forward_only(shape), shape, std::vector<StageCosts>(2)); }),
               {"costs of 2 stages for 4 stages"});
}

}  // namespace
}  // namespace bev
