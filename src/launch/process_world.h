// This process as one rank of a job: found by the variables of its launcher, connected to the
// other ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/host_engine.h"
#include "config/config.h"
#include "coordination/coordination_client.h"
#include "device/device.h"
#include "launch/rank_environment.h"

namespace bev {

class Communicator;

class ProcessWorld {
 public:
  struct Options {
    ParallelConfig parallel{};
    // As in CoordinationClient::Options: log, note_of_first.
    std::function<void(const std::string&)> note, note_of_first{};
    // Called from another thread while this one may be stuck: ends the process.
    std::function<void(const Failure&)> on_failure;
  };
  // Connects to the other ranks. All ranks of the job call it at the same time.
  ProcessWorld(const RankEnvironment& environment, const Options& options);
  ~ProcessWorld();

  int rank() const { return control_->rank(); }
  int size() const { return control_->size(); }
  CoordinationClient& control() { return *control_; }

  // All ranks together. The communicator must end before the device and this.
  std::unique_ptr<Communicator> make_world(Device& device);

  // "2 hosts, started by mpirun; tensors by Open MPI 4.1.4; control at 10.0.0.7:4711": known after
  // make_world().
  std::string describe() const;

  // The work of this rank is done: returns when that of all is.
  void finish();

 private:
  void connect(const Options& options);
  CommBackend backend_for(DeviceKind device) const;

  RankEnvironment environment_;
  ParallelConfig parallel_;
  std::unique_ptr<CoordinationClient> control_;
  std::unique_ptr<HostEngine> engine_;
  std::string control_at_, own_address_, engine_words_;
};

}  // namespace bev
