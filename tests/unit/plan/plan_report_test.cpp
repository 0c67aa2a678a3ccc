#include "plan/plan_report.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "config/parse/load.h"

namespace bev {
namespace {

LayoutPlan reported_plan(const std::vector<std::string>& more, int rank = 0) {
  std::vector<std::string> args{
      "--num-layers", "4",  "--hidden-size",         "32", "--vocab-size",       "64",
      "--seq-length", "16", "--num-attention-heads", "4",  "--micro-batch-size", "1",
      "--device",     "cpu"};
  args.insert(args.end(), more.begin(), more.end());
  return plan_layout(load(args).config, rank);
}

LayoutPlan pipeline(int rank = 0) {
  return reported_plan(
      {"--threads", "8", "--pipeline-model-parallel-size", "4", "--global-batch-size", "16"}, rank);
}

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(PlanTable, OfSeveralRanks) {
  const std::string text = plan_table(pipeline(3));
  for (const char* part :
       {"8 ranks: data 2, pipeline 4", "rank 3 (data 1 of 2, pipeline 1 of 4) holds layer 1\n",
        "bubble 37.5 %", "memory by stage", "bytes sent in a step by rank 3", "of the whole model",
        "8 micro-batches on each of 2 ranks"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  EXPECT_EQ(count(text, "  most\n"), 1) << text;
  EXPECT_EQ(count(text, "  least\n"), 1) << text;
}

TEST(PlanTable, OfOneRankSaysNothingOfOthers) {
  const std::string text = plan_table(reported_plan({}));
  for (const char* part : {"layout", "stage\n", "bytes sent", "rank"})
    EXPECT_EQ(text.find(part), std::string::npos) << part << " is in\n" << text;
}

TEST(PlanJson, KeysOfALayout) {
  const LayoutPlan plan = pipeline();
  const Json json = parse_json(plan_json(plan), "plan");
  EXPECT_EQ(json["layout"]["ranks"], 8);
  EXPECT_EQ(json["layout"]["pipeline"], 4);
  EXPECT_EQ(json["layout"]["data"], 2);
  EXPECT_EQ(json["layout"]["schedule"], "1f1b");
  EXPECT_EQ(json["bubble"], 0.375);
  EXPECT_EQ(json["parameters"]["total"], plan.shown.model_parameters);
  EXPECT_EQ(json["parameters"]["rank_max"], plan.most_parameters());
  EXPECT_EQ(json["memory"]["rank_max_bytes"], plan.largest().memory_bytes());
  ASSERT_EQ(json["ranks"].size(), 4);
  EXPECT_EQ(json["ranks"][2]["stage"], 2);
  EXPECT_EQ(json["ranks"][2]["rank"], 4);
  EXPECT_EQ(json["ranks"][2]["parameters"], plan.ranks[2].parameters);
  size_t sum = 0;
  for (const Json& bytes : json["ranks"][2]["memory"]) sum += bytes.get<size_t>();
  EXPECT_EQ(json["ranks"][2]["memory_bytes"], sum);
  EXPECT_EQ(json["sent"]["pipeline"], plan.shown.sent.pipeline);
  EXPECT_EQ(json["sent"]["rank_max"]["pipeline"], plan.most_sent().pipeline);
}

TEST(PlanJson, OneRankHasTheSameKeys) {
  const Json json = parse_json(plan_json(reported_plan({})), "plan");
  EXPECT_EQ(json["layout"]["ranks"], 1);
  EXPECT_EQ(json["ranks"].size(), 1);
  EXPECT_EQ(json["bubble"], 0);
  EXPECT_EQ(json["sent"]["tensor"], 0);
  EXPECT_EQ(json["parameters"]["total"], json["parameters"]["rank_max"]);
}

}  // namespace
}  // namespace bev
