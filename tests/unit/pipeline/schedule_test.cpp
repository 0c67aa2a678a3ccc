#include "pipeline/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/format.h"

namespace bev {
namespace {

constexpr ScheduleKind kKinds[] = {ScheduleKind::GPipe, ScheduleKind::OneFOneB,
                                   ScheduleKind::Interleaved, ScheduleKind::ZeroBubble};

bool possible(ScheduleKind kind, const PipelineShape& shape) {
  return shape.chunks == 1 || (kind == ScheduleKind::Interleaved && shape.ranks > 1);
}

std::vector<PipelineShape> small_shapes() {
  std::vector<PipelineShape> shapes;
  for (int ranks = 1; ranks <= 6; ++ranks) {
    for (int chunks = 1; chunks <= 3; ++chunks) {
      for (int64_t micros = 1; micros <= 13; ++micros) shapes.push_back({ranks, chunks, micros});
    }
  }
  return shapes;
}

std::string named(ScheduleKind kind, const PipelineShape& shape) {
  return format("{}, {} ranks, {} chunks, {} micro-batches", name_of_choice(kind), shape.ranks,
                shape.chunks, shape.micros);
}

std::vector<StageCosts> equal_stages(const PipelineShape& shape, const StageCosts& costs) {
  return std::vector<StageCosts>(static_cast<size_t>(shape.last_stage() + 1), costs);
}

ScheduleReport report_of(ScheduleKind kind, const PipelineShape& shape) {
  return verify_schedule(build_schedule(kind, shape), shape);
}

// Forwards and backwards of a stage come in the order of micro-batches, so that sums of gradients
// are the same bits for every schedule.
void expect_ascending(const Program& program) {
  std::map<std::pair<Act, uint16_t>, int64_t> before;
  for (const Instr& instr : program) {
    const auto [place, first] = before.try_emplace({instr.act, instr.chunk}, -1);
    EXPECT_LT(place->second, instr.micro) << name_of(instr.act);
    place->second = instr.micro;
  }
}

TEST(Schedule, OneRankRunsEachMicroBatchThrough) {
  for (const int64_t micros : {1, 2, 7}) {
    const Program program = build_schedule(ScheduleKind::OneFOneB, {.micros = micros}).front();
    Program expected;
    for (uint32_t micro = 0; micro < micros; ++micro) {
      for (const Act act : {Act::Load, Act::Forward, Act::Backward}) {
        expected.push_back({act, 0, micro, 0});
      }
    }
    EXPECT_EQ(program, expected);
    EXPECT_EQ(slots_of(program), 1);
  }
}

TEST(Schedule, EverySmallShapeIsVerified) {
  int combinations = 0;
  for (const ScheduleKind kind : kKinds) {
    for (const PipelineShape& shape : small_shapes()) {
      if (!possible(kind, shape)) continue;
      SCOPED_TRACE(named(kind, shape));
      const std::vector<Program> programs = build_schedule(kind, shape);
      EXPECT_NO_THROW(verify_schedule(programs, shape));
      EXPECT_NO_THROW(verify_schedule(programs, shape,
                                      equal_stages(shape, {.forward = 2, .backward_input = 3.5})));
      PipelineShape replacing = shape;
      replacing.gradient_replaces_input = true;
      EXPECT_NO_THROW(verify_schedule(programs, replacing));
      for (const Program& program : programs) expect_ascending(program);
      ++combinations;
    }
  }
  EXPECT_EQ(combinations, 3 * 6 * 13 + (1 + 5 * 3) * 13);
}

// Fails when programs are simulated as if gradients had a place of their own.
TEST(Schedule, ReplacedInputsAreOfTensorRanksThatKeepParts) {
  Config config;
  config.parallel.tensor = config.parallel.ranks = 2;
  EXPECT_FALSE(pipeline_shape(config, 4).gradient_replaces_input);
  config.recompute = {.granularity = Recompute::Full, .distribute = true};
  EXPECT_TRUE(pipeline_shape(config, 4).gradient_replaces_input);
  config.parallel.tensor = 1;
  EXPECT_FALSE(pipeline_shape(config, 4).gradient_replaces_input);
}

TEST(Schedule, EverySmallShapeIsVerifiedForwardOnly) {
  int combinations = 0;
  for (const PipelineShape& shape : small_shapes()) {
    if (!possible(ScheduleKind::Interleaved, shape)) continue;
    SCOPED_TRACE(named(ScheduleKind::Interleaved, shape));
    const std::vector<Program> programs = forward_only(shape);
    const ScheduleReport report = verify_schedule(programs, shape, {}, false);
    EXPECT_EQ(report.slots, std::vector<int>(static_cast<size_t>(shape.ranks), shape.chunks));
    if (shape.micros % shape.ranks == 0) {
      EXPECT_NEAR(report.bubble,
                  (shape.ranks - 1.0) / static_cast<double>(shape.micros * shape.chunks), 1e-12);
    }
    ++combinations;
  }
  EXPECT_EQ(combinations, (1 + 5 * 3) * 13);
}

TEST(Schedule, BubblesOfTheTextbook) {
  EXPECT_DOUBLE_EQ(report_of(ScheduleKind::GPipe, {4, 1, 8}).bubble, 0.375);
  EXPECT_DOUBLE_EQ(report_of(ScheduleKind::OneFOneB, {4, 1, 8}).bubble, 0.375);
  EXPECT_DOUBLE_EQ(report_of(ScheduleKind::Interleaved, {4, 2, 8}).bubble, 0.1875);
  EXPECT_DOUBLE_EQ(report_of(ScheduleKind::ZeroBubble, {4, 1, 8}).bubble, 0.125);
}

TEST(Schedule, BubblesOfManyShapes) {
  for (const ScheduleKind kind : kKinds) {
    for (const PipelineShape& shape : small_shapes()) {
      if (!possible(kind, shape)) continue;
      SCOPED_TRACE(named(kind, shape));
      const double ranks = shape.ranks, micros = static_cast<double>(shape.micros);
      const double bubble = report_of(kind, shape).bubble;
      if (kind == ScheduleKind::ZeroBubble) {
        if (micros >= ranks) {
          EXPECT_NEAR(bubble, (ranks - 1) / (3 * micros), 1e-12);
        }
      } else if (shape.chunks == 1 || shape.micros % shape.ranks == 0) {
        EXPECT_NEAR(bubble, (ranks - 1) / (micros * shape.chunks), 1e-12);
      }
      EXPECT_LE(bubble, (ranks - 1) / micros + 1e-12) << "no worse than 1F1B";
    }
  }
}

// The formulae of docs/parallelism.md for other costs than one.
TEST(Schedule, BubblesFollowTheCosts) {
  const PipelineShape shapes[] = {{2, 1, 2}, {3, 1, 7}, {4, 1, 8}, {6, 1, 24}};
  const StageCosts all_costs[] = {{2, 2.5, 1.5}, {1, 1, 0.25}, {1, 0.75, 1.25}, {1, 1.5, 2}};
  for (const PipelineShape& shape : shapes) {
    const double behind = shape.ranks - 1, micros = static_cast<double>(shape.micros);
    for (const StageCosts& costs : all_costs) {
      const std::vector<StageCosts> stages = equal_stages(shape, costs);
      const double f = costs.forward, b = costs.backward_input, w = costs.backward_weight;
      SCOPED_TRACE(format("{} ranks, {} micro-batches, costs {}, {}, {}", shape.ranks, shape.micros,
                          f, b, w));
      for (const ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::OneFOneB}) {
        EXPECT_NEAR(verify_schedule(build_schedule(kind, shape), shape, stages).bubble,
                    behind / micros, 1e-12);
      }
      EXPECT_NEAR(
          verify_schedule(build_schedule(ScheduleKind::ZeroBubble, shape), shape, stages).bubble,
          behind * std::max({f, b, f + b - w}) / (micros * (f + b + w)), 1e-12);
    }
  }
}

// An incomplete last group takes no longer than a complete one.
TEST(Schedule, InterleavedTakesAnyNumberOfMicroBatches) {
  for (const PipelineShape& shape : small_shapes()) {
    if (shape.ranks == 1) continue;
    SCOPED_TRACE(named(ScheduleKind::Interleaved, shape));
    PipelineShape full = shape;
    while (full.micros % full.ranks != 0) ++full.micros;
    const double end = simulate(build_schedule(ScheduleKind::Interleaved, shape), shape).end;
    EXPECT_LE(end, simulate(build_schedule(ScheduleKind::Interleaved, full), full).end);
  }
}

TEST(Schedule, SlotsOfEachKind) {
  for (const PipelineShape& shape : small_shapes()) {
    if (shape.chunks > 1) continue;
    SCOPED_TRACE(named(ScheduleKind::OneFOneB, shape));
    const std::vector<int> all = report_of(ScheduleKind::GPipe, shape).slots;
    const std::vector<int> few = report_of(ScheduleKind::OneFOneB, shape).slots;
    const std::vector<int> split = report_of(ScheduleKind::ZeroBubble, shape).slots;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const auto r = static_cast<size_t>(rank);
      EXPECT_EQ(all[r], shape.micros);
      EXPECT_EQ(few[r], std::min<int64_t>(shape.ranks - rank, shape.micros));
      // The paper's bound: no rank more than the first one of 1F1B.
      EXPECT_EQ(split[r], std::min<int64_t>(shape.ranks, shape.micros));
    }
  }
}

TEST(Schedule, InterleavedNeedsHalfAsManySlotsAgain) {
  std::vector<PipelineShape> shapes = small_shapes();
  for (const int chunks : {2, 3, 4, 5}) shapes.push_back({8, chunks, 64});
  for (const PipelineShape& shape : shapes) {
    if (!possible(ScheduleKind::Interleaved, shape)) continue;
    SCOPED_TRACE(named(ScheduleKind::Interleaved, shape));
    for (const int slots : report_of(ScheduleKind::Interleaved, shape).slots) {
      EXPECT_LE(2 * slots, 3 * shape.ranks * shape.chunks + shape.ranks);
      EXPECT_LE(slots, shape.micros * shape.chunks);
    }
  }
}

// Chunks have their own slots: (chunk, slot) names a memory.
TEST(Schedule, SlotsAreCountedPerChunk) {
  const PipelineShape shape{4, 2, 8};
  const std::vector<Program> programs = build_schedule(ScheduleKind::Interleaved, shape);
  EXPECT_EQ(verify_schedule(programs, shape).slots, (std::vector<int>{12, 12, 10, 6}));
  EXPECT_EQ(slots_of(programs[0], 0), 8);
  EXPECT_EQ(slots_of(programs[0], 1), 4);
  EXPECT_EQ(slots_of(programs[0], 2), 0);
  EXPECT_EQ(slots_of(programs[3], 0), 5);
  EXPECT_EQ(slots_of(programs[3], 1), 1);
}

// Of 1F1B on two ranks, word for word: where loads, transfers and slots stand.
TEST(Schedule, TransfersStandBesideWhatNeedsThem) {
  const std::vector<Program> programs = build_schedule(ScheduleKind::OneFOneB, {2, 1, 2});
  const Program first{{Act::Load, 0, 0, 0},         {Act::Forward, 0, 0, 0},
                      {Act::SendForward, 0, 0, 0},  {Act::Load, 0, 1, 1},
                      {Act::Forward, 0, 1, 1},      {Act::SendForward, 0, 1, 1},
                      {Act::RecvBackward, 0, 0, 0}, {Act::Backward, 0, 0, 0},
                      {Act::RecvBackward, 0, 1, 1}, {Act::Backward, 0, 1, 1}};
  const Program second{{Act::Load, 0, 0, 0},         {Act::RecvForward, 0, 0, 0},
                       {Act::Forward, 0, 0, 0},      {Act::Backward, 0, 0, 0},
                       {Act::SendBackward, 0, 0, 0}, {Act::Load, 0, 1, 0},
                       {Act::RecvForward, 0, 1, 0},  {Act::Forward, 0, 1, 0},
                       {Act::Backward, 0, 1, 0},     {Act::SendBackward, 0, 1, 0}};
  EXPECT_EQ(programs, (std::vector<Program>{first, second}));
}

TEST(Schedule, ImpossibleShapesAreRefused) {
  for (const ScheduleKind kind : kKinds) EXPECT_THROW(build_schedule(kind, {1, 2, 4}), Error);
  EXPECT_THROW(forward_only({1, 2, 4}), Error);
  EXPECT_THROW(build_schedule(ScheduleKind::GPipe, {4, 2, 8}), Error);
  EXPECT_THROW(build_schedule(ScheduleKind::OneFOneB, {4, 2, 8}), Error);
  EXPECT_THROW(build_schedule(ScheduleKind::ZeroBubble, {4, 2, 8}), Error);
  EXPECT_THROW(build_schedule(ScheduleKind::OneFOneB, {0, 1, 8}), Error);
  EXPECT_THROW(build_schedule(ScheduleKind::GPipe, {2, 1, 65537}), Error);  // slots are 16 bits
  EXPECT_NO_THROW(build_schedule(ScheduleKind::OneFOneB, {2, 1, 65537}));
}

TEST(Schedule, LargeShapesAreVerified) {
  const PipelineShape wide{64, 4, 256}, tall{8, 1, 30000};
  EXPECT_NEAR(report_of(ScheduleKind::Interleaved, wide).bubble, 63.0 / (4 * 256), 1e-12);
  EXPECT_NEAR(report_of(ScheduleKind::ZeroBubble, tall).bubble, 7.0 / (3 * 30000), 1e-12);
  EXPECT_EQ(report_of(ScheduleKind::GPipe, tall).slots.front(), 30000);
}

}  // namespace
}  // namespace bev
