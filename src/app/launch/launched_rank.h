// A verb that runs as one of several processes which a launcher started.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/cli/console.h"
#include "base/error.h"
#include "base/function_ref.h"
#include "comm/communicator.h"
#include "launch/process_world.h"

namespace bev::app {

// What the launcher says; absent where this process is alone. This process sees one GPU afterwards.
// REQUIRES: nothing has used CUDA yet.
std::optional<RankEnvironment> own_environment();

// That of a job of one process, whose engine somebody wants to see at work.
RankEnvironment single_rank_environment();

// For an error before the ranks have met, such as a flag that does not exist. Where their launcher
// has given all of them the same command line, the first on a machine says it and the others
// nothing; where nobody knows, the first rank says it and every other shortly. Returns the exit
// code, or throws the error for main to print.
int report_once(const RankEnvironment& environment, const Error& error);

class LaunchedRank {
 public:
  // Meets the others, sees that all run the same program, and binds this process to its processors.
  // When another rank fails, the process ends with that news and exit code 5, wherever it is.
  LaunchedRank(const RankEnvironment& environment, const Config& config, const Console& console);

  int rank() const { return world_.rank(); }
  int size() const { return world_.size(); }
  CoordinationClient& control() { return world_.control(); }

  // Of the cpu device: what is asked for (0: nothing), or this rank's share of what there is.
  int threads(int64_t asked) const;
  bool shares_gpu() const { return sharing_memory(DeviceKind::Cuda) > 1; }
  // Ranks on this machine that share its memory, or that of a GPU.
  int sharing_memory(DeviceKind kind) const;

  std::unique_ptr<Communicator> make_world(Device& device) { return world_.make_world(device); }
  // Engine, interface, processors: in words.
  std::string describe() const { return world_.describe(); }
  const std::string& binding() const { return binding_; }

  // All ranks together. Where something differs, all throw the same Usage error, of which one rank
  // prints the words.
  void require_same_on_ranks(const std::string& what, const std::string& here);
  // All ranks together: `look` of each of them. The first rank where it throws has the words of the
  // error, the others a short one.
  void require_all_well(FunctionRef<void()> look);

  // All ranks end alike from here on, and what one throws the others throw too: none ends before
  // all have done their work.
  void end_together() { is_agreed_ = true; }

  // The work of this rank: what it throws is told to the others before it leaves here.
  void run(FunctionRef<void()> work);

 private:
  void bind(std::optional<int> gpu_node);

  int local_size_, local_gpus_;
  ProcessWorld world_;
  std::string binding_;
  int sharing_cpus_ = 1;
  bool is_agreed_ = false;  // what ends this rank ends all of them
};

}  // namespace bev::app
