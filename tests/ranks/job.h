// A job of several processes on this machine, for the tests of what connects them.
#pragma once

#include <functional>
#include <memory>

#include "comm/host_engine_loader.h"
#include "coordination/coordination_client.h"

namespace bev::test {

// What a process of the job has. Members are destroyed from the last to the first.
struct Rank {
  std::unique_ptr<CoordinationClient> control;
  std::unique_ptr<HostEngine> engine;
};

using Body = std::function<void(Rank&)>;

// Makes a rank of this process, which mpirun started. Returns what main() should.
int run_under_mpirun(CommBackend engine, const Body& body);

// Forks `size` processes, before there are threads. Returns what main() should: not 0 where one
// failed, after the others were ended.
int run_forked(int size, CommBackend engine, const Body& body);

}  // namespace bev::test
