#include "app/launch/inference_ranks.h"

#include <gtest/gtest.h>

#include <atomic>

#include "app/cli/shared_flags.h"
#include "support/expect_error.h"
#include "unit/infer/stored_model.h"

namespace bev::app {
namespace {

using test::expect_error;

constexpr std::array<VerbFlag, 7> kRankFlags{{kTensorFlag, kMegatronTensorFlag, kPipelineFlag,
                                              kMegatronPipelineFlag, kThreadsFlag, kDeviceFlag,
                                              kPrecisionFlag}};
constexpr VerbSpec kRankVerb{.name = "try", .summary = "", .flags = kRankFlags};

InferenceRanks ranks_of(std::vector<std::string> args,
                        std::optional<RankEnvironment> environment = {}) {
  args.insert(args.end(), {"--device", "reference", "--threads", "1"});
  return InferenceRanks(kRankVerb, FlagValues(kRankVerb, args), std::move(environment), "",
                        GivenModel(kRankVerb, {}));
}

TEST(InferenceRanks, OneUnlessAskedFor) {
  const InferenceRanks ranks = ranks_of({});
  EXPECT_EQ(ranks.size(), 1);
  EXPECT_TRUE(ranks.prints());
}

// Every rank has its part of the model, and one of them is the first.
TEST(InferenceRanks, EachHoldsItsPart) {
  const test::StoredModel stored;
  const ModelFolder folder = stored.folder();
  InferenceRanks ranks = ranks_of({"--tensor", "2", "--pipeline-model-parallel-size", "2"});
  EXPECT_EQ(ranks.size(), 4);
  EXPECT_EQ(ranks.parallel().tensor, 2);
  EXPECT_EQ(ranks.parallel().pipeline, 2);
  const InferenceSetup use = ranks.use_of(folder, 1, 7);
  std::atomic<int> places = 0, first = 0;
  std::atomic<int64_t> rows = 0;
  ranks.run(folder, use, [&](const RankContext& place) {
    LoadedModel model(folder, use, place.device, place.world);
    ++places;
    if (place.is_first) ++first;
    EXPECT_EQ(place.is_first, place.world.rank() == 0);
    EXPECT_EQ(place.world.size(), 4);
    const Param* head = model.placed().params.find("head.weight");
    EXPECT_EQ(head != nullptr, place.world.rank() >= 2);
    if (head != nullptr) rows += head->value.shape[0];
  });
  EXPECT_EQ(places, 4);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(rows, 30);  // 29 ids, made even
}

TEST(InferenceRanks, WhatOneThrowsIsThrown) {
  const test::StoredModel stored;
  const ModelFolder folder = stored.folder();
  InferenceRanks ranks = ranks_of({"--tensor", "2"});
  const InferenceSetup use = ranks.use_of(folder, 1, 7);
  expect_error(ErrorKind::Data, "no such word", [&] {
    ranks.run(folder, use, [](const RankContext& place) {
      if (!place.is_first) throw Error(ErrorKind::Data, "no such word");
      place.world.barrier(std::chrono::seconds(60));
    });
  });
}

TEST(InferenceRanks, ModelsThatDoNotDivide) {
  const test::StoredModel stored;
  const ModelFolder folder = stored.folder();
  expect_error(ErrorKind::Usage, "heads do not divide over 3 tensor ranks",
               [&] { (void)ranks_of({"--tensor", "3"}).use_of(folder, 1, 7); });
  expect_error(ErrorKind::Usage, "(--tensor-model-parallel-size)",
               [&] { (void)ranks_of({"--tensor-model-parallel-size", "3"}).use_of(folder, 1, 7); });
  expect_error(ErrorKind::Usage, "layers do not fill 64 stages",
               [&] { (void)ranks_of({"--pipeline", "64"}).use_of(folder, 1, 7); });
}

TEST(InferenceRanks, NumbersOfRanks) {
  expect_error(ErrorKind::Usage, "exclude each other",
               [] { ranks_of({"--tensor", "2", "--tensor-model-parallel-size", "2"}); });
  expect_error(ErrorKind::Usage, "32 tensor x 16 pipeline = 512 ranks",
               [] { ranks_of({"--tensor", "32", "--pipeline", "16"}); });
  expect_error(ErrorKind::Usage, "--tensor \"0\"", [] { ranks_of({"--tensor", "0"}); });
}

TEST(InferenceRanks, OfALauncher) {
  RankEnvironment second;
  second.rank = 1;
  second.size = 6;
  const InferenceRanks ranks = ranks_of({"--tensor", "3", "--pipeline", "2"}, second);
  EXPECT_FALSE(ranks.prints());
  expect_error(ErrorKind::Usage, "product is 6", [&] { ranks_of({"--tensor", "4"}, second); });
}

// Only a verb with --data-parallel has copies of the model.
TEST(InferenceRanks, CopiesOfTheModel) {
  static constexpr std::array<VerbFlag, 8> kFlags{{kTensorFlag, kMegatronTensorFlag, kPipelineFlag,
                                                   kMegatronPipelineFlag, kDataFlag, kThreadsFlag,
                                                   kDeviceFlag, kPrecisionFlag}};
  static constexpr VerbSpec kVerb{.name = "try", .summary = "", .flags = kFlags};
  const auto ranks_with = [&](const std::vector<std::string>& args,
                              std::optional<RankEnvironment> environment) {
    return InferenceRanks(kVerb, FlagValues(kVerb, args), std::move(environment), "",
                          GivenModel(kVerb, {}))
        .size();
  };
  EXPECT_EQ(ranks_with({}, {}), 1);
  EXPECT_EQ(ranks_with({"--data-parallel", "3", "--tensor", "2"}, {}), 6);
  RankEnvironment first;
  first.size = 6;
  EXPECT_EQ(ranks_with({}, first), 6);
  EXPECT_EQ(ranks_with({"--tensor", "3"}, first), 6);
  EXPECT_EQ(ranks_with({"--tensor", "3", "--data-parallel", "2"}, first), 6);
  expect_error(ErrorKind::Usage, "product divides 6",
               [&] { ranks_with({"--tensor", "4"}, first); });
  expect_error(ErrorKind::Usage, "1 tensor x 1 pipeline x 4 data-parallel = 4 ranks",
               [&] { ranks_with({"--data-parallel", "4"}, first); });
}

}  // namespace
}  // namespace bev::app
