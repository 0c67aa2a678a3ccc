#include "app/launch/launch_flags.h"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.h"

namespace bev::app {
namespace {

using test::expect_error;
using Args = std::vector<std::string>;
using Values = std::map<std::string, std::string>;

LaunchRequest read(const Args& args, const Values& values = {}) {
  const auto request = launch_request(args, [&](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  });
  EXPECT_TRUE(request.has_value());
  return request.value_or(LaunchRequest{});
}

TEST(LaunchFlags, LineOfAMegatronScript) {
  const auto r =
      read({"--nproc_per_node", "8", "--nnodes", "2", "--node_rank", "1", "--master_addr", "head",
            "--master_port", "6000", "train", "--num-layers", "2"});
  EXPECT_EQ(r.processes, 8);
  EXPECT_EQ(r.nodes, 2);
  EXPECT_EQ(r.node, 1);
  EXPECT_EQ(r.master_host, "head");
  EXPECT_EQ(r.master_port, 6000);
  EXPECT_EQ(r.command, (Args{"train", "--num-layers", "2"}));
  EXPECT_TRUE(r.notes.empty());
}

TEST(LaunchFlags, BothSpellingsAndShortForms) {
  const auto r =
      read({"--nproc-per-node=4", "-t", "3", "-r", "0:1", "--log_dir", "l", "--standalone",
            "--no_python", "--max_restarts=2", "--", "/bin/x", "--tee", "1"});
  EXPECT_EQ(r.processes, 4);
  EXPECT_EQ(r.tee, "3");
  EXPECT_EQ(r.redirects, "0:1");
  EXPECT_EQ(r.log_folder, "l");
  EXPECT_EQ(r.max_restarts, 2);
  EXPECT_EQ(r.command, (Args{"/bin/x", "--tee", "1"}));
}

TEST(LaunchFlags, OneMachineStaysByItself) {
  const auto r = read({"train"});
  EXPECT_EQ(r.processes, 1);
  EXPECT_EQ(r.master_host, "127.0.0.1");
  EXPECT_EQ(r.master_port, 0);
}

TEST(LaunchFlags, KindsOfProcesses) {
  EXPECT_EQ(read({"--nproc_per_node", "auto", "x"}).kind, ProcessKind::Auto);
  EXPECT_EQ(read({"--nproc_per_node", "gpu", "x"}).kind, ProcessKind::Gpu);
  EXPECT_EQ(read({"--nproc_per_node", "cpu", "x"}).kind, ProcessKind::Cpu);
  for (const char* text : {"0", "-1", "all", "4097", "2x"})
    expect_error(ErrorKind::Usage, "--nproc-per-node",
                 [&] { read({std::string("--nproc_per_node=") + text, "x"}); });
}

TEST(LaunchFlags, EndpointIsTheMaster) {
  const Args base{"--nnodes=2", "--node_rank=0"};
  const auto with = [&](const std::string& endpoint) {
    Args args = base;
    args.insert(args.end(), {"--rdzv_endpoint", endpoint, "x"});
    return read(args);
  };
  EXPECT_EQ(with("head").master_host, "head");
  EXPECT_EQ(with("head").master_port, 29500);
  EXPECT_EQ(with("head:1234").master_port, 1234);
  EXPECT_EQ(with("[fe80::1]:1234").master_host, "fe80::1");
  EXPECT_EQ(with("[fe80::1]:1234").master_port, 1234);
  EXPECT_EQ(with("fe80::1").master_host, "fe80::1");
  for (const char* text : {":1234", "head:", "head:x", "head:65536"})
    expect_error(ErrorKind::Usage, "--rdzv-endpoint", [&] { with(text); });
}

TEST(LaunchFlags, ManyMachinesMustBeNumbered) {
  const Args args{"--nnodes", "2", "--rdzv_endpoint", "head:1", "x"};
  expect_error(ErrorKind::Usage, "--node-rank from 0 to 1", [&] { read(args); });
  EXPECT_EQ(read(args, {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}}).node, 1);
  EXPECT_EQ(read(args, {{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}}).node, 1);
  EXPECT_EQ(read(args, {{"GROUP_RANK", "1"}}).node, 1);
  // More tasks than machines: their numbers are not those of machines.
  expect_error(ErrorKind::Usage, "--node-rank",
               [&] { read(args, {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "1"}}); });
  expect_error(ErrorKind::Usage, "--node-rank is \"2\"",
               [&] { read({"--nnodes=2", "--node_rank=2", "--master_addr=a", "x"}); });
  expect_error(ErrorKind::Usage, "--master-addr",
               [&] { read({"--nnodes=2", "--node_rank=1", "x"}); });
}

TEST(LaunchFlags, VariablesOfTorchrunCount) {
  const auto r = read({"train"}, {{"PET_NNODES", "2"},
                                  {"PET_NODE_RANK", "1"},
                                  {"PET_NPROC_PER_NODE", "4"},
                                  {"PET_MASTER_ADDR", "job-master-0"},
                                  {"PET_MASTER_PORT", "23456"}});
  EXPECT_EQ(r.nodes, 2);
  EXPECT_EQ(r.node, 1);
  EXPECT_EQ(r.processes, 4);
  EXPECT_EQ(r.master_host, "job-master-0");
  EXPECT_EQ(r.master_port, 23456);
}

TEST(LaunchFlags, NumberOfMachinesMayChange) {
  EXPECT_EQ(read({"--nnodes=1:1", "x"}).nodes, 1);
  EXPECT_FALSE(read({"--nnodes=1:1", "x"}).is_elastic());
  const auto r = read({"--nnodes=2:4", "--node_rank=7", "--master_addr=a", "--last-call=1.5",
                       "--join_timeout=2", "--max_idle_restarts=0", "x"});
  EXPECT_TRUE(r.is_elastic());
  EXPECT_EQ(r.least_nodes, 2);
  EXPECT_EQ(r.nodes, 4);
  EXPECT_EQ(r.node, 7) << "one in reserve";
  EXPECT_EQ(r.last_call, std::chrono::milliseconds(1500));
  EXPECT_EQ(r.join_timeout, std::chrono::minutes(2));
  EXPECT_EQ(r.max_idle_restarts, 0);
  for (const char* text : {"some", "4:2", "0:2", ":2", "2:", "1:2:3"})
    expect_error(ErrorKind::Usage, "--nnodes is",
                 [&] { read({std::string("--nnodes=") + text, "--node_rank=0", "x"}); });
  expect_error(ErrorKind::Usage, "--node-rank", [] { read({"--nnodes=1:4", "x"}); });
  expect_error(ErrorKind::Usage, "--master-port 65535", [] {
    read({"--nnodes=1:4", "--node_rank=0", "--master_addr=a", "--master_port=65535", "x"});
  });
}

// Fails when a dry run asks which machine this is, or a --dry-run of another program is taken for
// one of train.
TEST(LaunchFlags, DryRunNeedsNoOtherMachine) {
  const auto r = read(
      {"--nproc_per_node", "4", "--nnodes", "96", "python", "-u", "pretrain_gpt.py", "--dry-run"});
  EXPECT_TRUE(r.only_checks());
  EXPECT_EQ(r.nodes * r.processes, 384);
  EXPECT_TRUE(read({"train", "--dry-run"}).only_checks());
  EXPECT_FALSE(read({"train"}).only_checks());
  EXPECT_FALSE(read({"./program", "--dry-run"}).only_checks());
}

TEST(LaunchFlags, WhatCannotBeIsRefused) {
  expect_error(ErrorKind::Usage, "nothing to launch", [] { read({"--nproc_per_node", "2"}); });
  expect_error(ErrorKind::Usage, "nothing to launch", [] { read({"--"}); });
  expect_error(ErrorKind::Usage, "module of Python", [] { read({"--module", "x"}); });
  expect_error(ErrorKind::Usage, "module of Python", [] { read({"-m", "x"}); });
  expect_error(ErrorKind::Usage, "--nproc-per-node", [] { read({"--nproc_per_nod", "2", "x"}); });
  expect_error(ErrorKind::Usage, "etcd", [] { read({"--rdzv_backend=etcd", "x"}); });
  expect_error(ErrorKind::Usage, "--standalone", [] {
    read({"--standalone", "--nnodes=2", "--node_rank=0", "--master_addr=a", "x"});
  });
  expect_error(ErrorKind::Usage, "--max-restarts", [] { read({"--max_restarts=-1", "x"}); });
}

TEST(LaunchFlags, WhatChangesNothingIsNoted) {
  EXPECT_EQ(read({"--rdzv_backend=c10d", "--rdzv_conf", "a=b", "x"}).notes.size(), 2U);
}

TEST(StreamsByRank, AllOrSome) {
  EXPECT_EQ(streams_by_rank("", "--tee", 2), (std::vector<int>{0, 0}));
  EXPECT_EQ(streams_by_rank("3", "--tee", 2), (std::vector<int>{3, 3}));
  EXPECT_EQ(streams_by_rank("0:3,2:1", "--tee", 3), (std::vector<int>{3, 0, 1}));
  for (const char* text : {"4", "x", "0:4", "3:1", "0:", ":1", "0:1,", ",", "0:1;1:1"})
    expect_error(ErrorKind::Usage, "--tee is", [&] { streams_by_rank(text, "--tee", 3); });
}

}  // namespace
}  // namespace bev::app
