#include "launch/rank_environment.h"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;
using Values = std::map<std::string, std::string>;

std::optional<RankEnvironment> in(const Values& values) {
  return rank_environment([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

Values with(Values values, const Values& more) {
  for (const auto& [name, value] : more) values[name] = value;
  return values;
}

const Values kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Values kTorchrun{{"RANK", "5"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "node1"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                       {"TORCHELASTIC_RUN_ID", "abc"},
                       {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Values kSrun{{"SLURM_PROCID", "3"},
                   {"SLURM_NTASKS", "4"},
                   {"SLURM_STEP_NUM_TASKS", "4"},
                   {"SLURM_LOCALID", "1"},
                   {"SLURM_NODEID", "1"},
                   {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                   {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                   {"SLURM_JOB_ID", "1000"},
                   {"SLURM_STEP_ID", "3"}};

void expect_numbers(const RankEnvironment& e, int rank, int size, int local_rank, int local_size) {
  EXPECT_EQ(e.rank, rank);
  EXPECT_EQ(e.size, size);
  EXPECT_EQ(e.local_rank, local_rank);
  EXPECT_EQ(e.local_size, local_size);
}

TEST(RankEnvironment, NothingSetIsAlone) {
  EXPECT_FALSE(in({}));
  EXPECT_FALSE(in({{"MASTER_ADDR", "node1"}, {"LOCAL_RANK", "0"}}));
  EXPECT_FALSE(in({{"RANK", ""}, {"WORLD_SIZE", ""}}));
}

TEST(RankEnvironment, JobOfOneIsAlone) {
  EXPECT_FALSE(in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(in({{"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(in(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"},
                                  {"OMPI_COMM_WORLD_SIZE", "1"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})));
}

TEST(RankEnvironment, OpenMpi) {
  const auto e = in(kOpenMpi);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Mpirun);
  expect_numbers(*e, 3, 4, 1, 2);
  EXPECT_EQ(e->master_host, "");
}

TEST(RankEnvironment, Mpich) {
  const Values values{
      {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};
  const auto e = in(values);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Mpirun);
  expect_numbers(*e, 1, 2, 0, 1);
}

TEST(RankEnvironment, PmiOfSrunIsSlurm) {
  const auto e = in(with(kSrun, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Slurm);
}

TEST(RankEnvironment, MpirunAndTheSameNumbersIsMpirun) {
  const auto e = in(with(kOpenMpi, {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Mpirun);
}

TEST(RankEnvironment, OtherNumbersUnderMpirunWinWhenComplete) {
  const auto e = in(with(kOpenMpi, kTorchrun));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Variables);
  expect_numbers(*e, 5, 8, 1, 4);
}

TEST(RankEnvironment, OtherNumbersUnderMpirunAreRefusedWhenNotComplete) {
  for (const Values& more : {Values{{"RANK", "0"}, {"WORLD_SIZE", "4"}}, Values{{"RANK", "1"}},
                             Values{{"WORLD_SIZE", "8"}},
                             Values{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}}}) {
    const std::string text =
        expect_error(ErrorKind::Usage, "MASTER_PORT", [&] { in(with(kOpenMpi, more)); });
    EXPECT_NE(text.find("rank 3 of 4"), std::string::npos) << text;
  }
}

TEST(RankEnvironment, TorchrunLeavesTheNextPort) {
  const auto e = in(kTorchrun);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Variables);
  expect_numbers(*e, 5, 8, 1, 4);
  EXPECT_EQ(e->master_host, "node1");
  EXPECT_EQ(e->master_port, 29501);
  EXPECT_EQ(e->job, "job abc restart 2");
  EXPECT_EQ(in(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}))->master_port, 29500);
  expect_error(ErrorKind::Usage, "65535", [] { in(with(kTorchrun, {{"MASTER_PORT", "65535"}})); });
}

TEST(RankEnvironment, OwnLauncherCountsRestarts) {
  const auto e = in({{"RANK", "0"},
                     {"WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"BEVATRON_JOB", "seven"},
                     {"BEVATRON_RESTART", "3"}});
  ASSERT_TRUE(e);
  EXPECT_EQ(e->job, "job seven restart 3");
  EXPECT_EQ(e->words, "RANK, WORLD_SIZE and MASTER_ADDR as bevatron launch sets them");
}

TEST(RankEnvironment, LocalNumbersFollow) {
  const Values base{{"RANK", "5"}, {"WORLD_SIZE", "8"}};
  // All on one machine.
  const auto here = in(with(base, {{"MASTER_ADDR", "localhost"}}));
  ASSERT_TRUE(here);
  expect_numbers(*here, 5, 8, 5, 8);
  EXPECT_EQ(here->master_port, 6000);
  // A pod each.
  expect_numbers(*in(with(base, {{"MASTER_ADDR", "job-master-0"}})), 5, 8, 0, 1);
  expect_numbers(*in(with(base, {{"MASTER_ADDR", "a"}, {"LOCAL_WORLD_SIZE", "4"}})), 5, 8, 1, 4);
  expect_error(ErrorKind::Usage, "LOCAL_WORLD_SIZE",
               [&] { in(with(base, {{"MASTER_ADDR", "a"}, {"LOCAL_RANK", "1"}})); });
  expect_error(ErrorKind::Usage, "LOCAL_RANK",
               [&] { in(with(base, {{"MASTER_ADDR", "a"}, {"LOCAL_WORLD_SIZE", "3"}})); });
}

TEST(RankEnvironment, ManyMachinesNeedAMaster) {
  const Values base{{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  expect_error(ErrorKind::Usage, "MASTER_ADDR", [&] { in(base); });
  const auto e = in(with(base, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->master_host, "127.0.0.1");
}

TEST(RankEnvironment, HalfSetIsRefused) {
  expect_error(ErrorKind::Usage, "WORLD_SIZE is not set", [] { in({{"RANK", "0"}}); });
  expect_error(ErrorKind::Usage, "RANK is not set", [] { in({{"WORLD_SIZE", "2"}}); });
  expect_error(ErrorKind::Usage, "OMPI_COMM_WORLD_SIZE",
               [] { in({{"OMPI_COMM_WORLD_RANK", "0"}}); });
}

TEST(RankEnvironment, WhatIsNoNumberIsRefused) {
  for (const char* value : {"x", "-1", "1x", " 1", "1.0", "99999999999999999999", "8"})
    expect_error(ErrorKind::Usage, "RANK is", [&] { in(with(kTorchrun, {{"RANK", value}})); });
  for (const char* value : {"0", "65536", "http", "-5"})
    expect_error(ErrorKind::Usage, "MASTER_PORT is",
                 [&] { in(with(kTorchrun, {{"MASTER_PORT", value}})); });
  expect_error(ErrorKind::Usage, "WORLD_SIZE is",
               [] { in(with(kTorchrun, {{"WORLD_SIZE", "0"}})); });
}

TEST(RankEnvironment, ContradictoryLocalNumbersAreRefused) {
  expect_error(ErrorKind::Usage, "LOCAL_RANK is 4",
               [] { in(with(kTorchrun, {{"LOCAL_RANK", "4"}})); });
  expect_error(ErrorKind::Usage, "LOCAL_WORLD_SIZE is 9",
               [] { in(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}})); });
  expect_error(ErrorKind::Usage, "RANK is 2",
               [] { in(with(kTorchrun, {{"RANK", "2"}, {"LOCAL_RANK", "3"}})); });
}

TEST(RankEnvironment, Srun) {
  const auto e = in(kSrun);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Slurm);
  expect_numbers(*e, 3, 4, 1, 2);
  EXPECT_EQ(e->master_host, "gpu07");
  EXPECT_EQ(e->master_port, 20000 + (37000 + 3) % 20000);
  EXPECT_EQ(e->job, "Slurm job 1000 step 3 restart 0");
  EXPECT_EQ(in(with(kSrun, {{"SLURM_RESTART_COUNT", "2"}}))->job,
            "Slurm job 1000 step 3 restart 2");
}

TEST(RankEnvironment, SrunPortIsInItsRange) {
  for (const char* job : {"0", "1", "65535", "4294967295"}) {
    const int port = in(with(kSrun, {{"SLURM_JOB_ID", job}}))->master_port;
    EXPECT_GE(port, 20000);
    EXPECT_LE(port, 39999);
  }
}

TEST(RankEnvironment, SrunOnOneMachineStaysThere) {
  const auto e = in(with(kSrun, {{"SLURM_STEP_TASKS_PER_NODE", "4"},
                                 {"SLURM_NODEID", "0"},
                                 {"SLURM_LOCALID", "3"},
                                 {"SLURM_STEP_NODELIST", "gpu07"}}));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->master_host, "127.0.0.1");
}

TEST(RankEnvironment, MasterVariablesWinUnderSrun) {
  const auto e = in(with(kSrun, {{"MASTER_ADDR", "head"}, {"MASTER_PORT", "1234"}}));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->master_host, "head");
  EXPECT_EQ(e->master_port, 1234);
}

TEST(RankEnvironment, ScriptThatSetsRankUnderSrun) {
  // LOCAL_RANK and MASTER_ADDR are left to Slurm.
  const auto e = in(with(kSrun, {{"RANK", "3"}, {"WORLD_SIZE", "4"}}));
  ASSERT_TRUE(e);
  expect_numbers(*e, 3, 4, 1, 2);
  EXPECT_EQ(e->master_host, "gpu07");
  // RANK alone says nothing new; another one is a mistake.
  EXPECT_EQ(in(with(kSrun, {{"RANK", "3"}}))->by, LaunchedBy::Slurm);
  expect_error(ErrorKind::Usage, "rank 3 of 4", [] { in(with(kSrun, {{"RANK", "2"}})); });
  expect_error(ErrorKind::Usage, "rank 3 of 4", [] { in(with(kSrun, {{"WORLD_SIZE", "32"}})); });
}

TEST(RankEnvironment, TorchrunUnderSrun) {
  const auto e = in(with(kSrun, kTorchrun));
  ASSERT_TRUE(e);
  EXPECT_EQ(e->by, LaunchedBy::Variables);
  expect_numbers(*e, 5, 8, 1, 4);
}

TEST(RankEnvironment, ShellsOfSlurmAreAlone) {
  Values batch = kSrun;
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(in(batch)) << "sbatch";
  EXPECT_FALSE(in(with(kSrun, {{"SLURM_STEP_ID", "4294967290"}}))) << "interactive step of salloc";
  Values salloc = kSrun;
  salloc.erase("SLURM_PROCID");
  EXPECT_FALSE(in(salloc));
  EXPECT_FALSE(in(with(kSrun, {{"SLURM_PROCID", "0"},
                               {"SLURM_LOCALID", "0"},
                               {"SLURM_NODEID", "0"},
                               {"SLURM_STEP_NUM_TASKS", "1"},
                               {"SLURM_STEP_TASKS_PER_NODE", "1"}})))
      << "srun -n 1 in a job of 4 tasks";
}

TEST(RankEnvironment, SlurmThatContradictsItselfIsRefused) {
  expect_error(ErrorKind::Usage, "SLURM_NODEID", [] { in(with(kSrun, {{"SLURM_NODEID", "2"}})); });
  expect_error(ErrorKind::Usage, "SLURM_LOCALID",
               [] { in(with(kSrun, {{"SLURM_LOCALID", "2"}})); });
  expect_error(ErrorKind::Usage, "SLURM_STEP_NODELIST",
               [] { in(with(kSrun, {{"SLURM_STEP_NODELIST", "gpu[7"}})); });
  Values nameless = kSrun;
  nameless.erase("SLURM_STEP_NODELIST");
  expect_error(ErrorKind::Usage, "MASTER_ADDR", [&] { in(nameless); });
}

int64_t restarts_in(const Values& values) {
  return restarts_of_job([&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
}

TEST(RankEnvironment, RestartsAreThoseOfTheLauncherAndOfSlurm) {
  EXPECT_EQ(in(kTorchrun)->restarts, 2);
  EXPECT_EQ(in(with(kTorchrun, {{"SLURM_RESTART_COUNT", "1"}}))->restarts, 3);
  EXPECT_EQ(in(with(kTorchrun, {{"BEVATRON_RESTART", "7"}}))->restarts, 2) << "another's";
  EXPECT_EQ(in(kSrun)->restarts, 0);
  EXPECT_EQ(in(with(kSrun, {{"SLURM_RESTART_COUNT", "4"}}))->restarts, 4);
  EXPECT_EQ(in(with(kOpenMpi, {{"SLURM_RESTART_COUNT", "4"}}))->restarts, 4);
  EXPECT_EQ(in({{"RANK", "1"},
                {"WORLD_SIZE", "2"},
                {"MASTER_ADDR", "127.0.0.1"},
                {"BEVATRON_RESTART", "5"}})
                ->restarts,
            5);
}

TEST(RankEnvironment, OneThatIsAloneHasRestartsToo) {
  EXPECT_EQ(restarts_in({}), 0);
  EXPECT_EQ(restarts_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"BEVATRON_RESTART", "5"}}), 5);
  EXPECT_EQ(restarts_in({{"SLURM_RESTART_COUNT", "1"}}), 1);
  expect_error(ErrorKind::Usage, "BEVATRON_RESTART",
               [] { restarts_in({{"BEVATRON_RESTART", "x"}}); });
}

}  // namespace
}  // namespace bev
