// How verbs that use a trained model run: on one rank or on several, which are threads of this
// process, or the processes that a launcher started.
//
//   return run_inference_verb(verb, args, [](const FlagValues& flags, InferenceRanks& ranks) {
//     const ModelFolder folder = open_model_folder(...);
//     const InferenceSetup use = ranks.use_of(folder, sequences, length);
//     ranks.run(folder, use, [&](const RankPlace& place) {
//       LoadedModel model(folder, use, place.device, place.world);
//       ... if (place.is_first) print
//     });
//   });
#pragma once

#include <optional>
#include <span>
#include <string>

#include "app/cli/cli_flags.h"
#include "app/launch/given_model.h"
#include "base/function_ref.h"
#include "comm/communicator.h"
#include "infer/loaded_model.h"
#include "launch/rank_environment.h"

namespace bev::app {

// A verb that uses InferenceRanks has all four, and those of shared_flags.h.
inline constexpr VerbFlag kTensorFlag{"--tensor", "N", "ranks that share each matrix [default: 1]"};
inline constexpr VerbFlag kPipelineFlag{"--pipeline", "N",
                                        "ranks that share the layers [default: 1]"};
inline constexpr VerbFlag kMegatronTensorFlag{"--tensor-model-parallel-size", "N",
                                              "Megatron's name of --tensor"};
inline constexpr VerbFlag kMegatronPipelineFlag{"--pipeline-model-parallel-size", "N",
                                                "Megatron's name of --pipeline"};

// A verb that works on several batches at the same time has this one, too.
inline constexpr VerbFlag kDataFlag{"--data-parallel", "N",
                                    "copies of the model, each on its own ranks [default: 1; of a "
                                    "launcher's processes as many as they make]"};

// One of the ranks at work.
struct RankContext {
  Device& device;
  Communicator& world;
  bool is_first;  // exactly one is: it prints
};

class InferenceRanks {
 public:
  // What the flags ask for, under the launcher that there is, if any: Usage error where it started
  // another number of processes.
  // Whether the verb has kDataFlag decides whether there may be several copies of the model.
  InferenceRanks(const VerbSpec& verb, const FlagValues& flags,
                 std::optional<RankEnvironment> environment, std::string arguments,
                 GivenModel given);

  int size() const { return static_cast<int>(parallel_.ranks); }
  const DeviceConfig& device() const { return device_; }
  const ParallelConfig& parallel() const { return parallel_; }
  // Whether this process has the first rank, or is alone. The others say nothing.
  bool prints() const { return !environment_ || environment_->rank == 0; }

  // The use of a model on these ranks, in batches of at most so many sequences of at most so many
  // tokens. Usage error if the model cannot be split over them or is not the one that the
  // flags describe.
  InferenceSetup use_of(const ModelFolder& folder, int64_t sequences, int64_t length) const;

  // Runs body once on each rank, at the same time; returns when all that run here are done. What
  // one throws ends the others. They wait at most use.parallel.timeout_minutes for each other.
  // REQUIRES: `use` is what use_of() returned, but for that limit.
  void run(const ModelFolder& folder, const InferenceSetup& use,
           FunctionRef<void(const RankContext& place)> body);

 private:
  friend int run_inference_verb(
      const VerbSpec& verb, std::span<const std::string> args,
      FunctionRef<void(const FlagValues& flags, InferenceRanks& ranks)> body);

  void run_process(const Config& config, FunctionRef<void(const RankContext& place)> body);
  static void run_threads(const Config& config, FunctionRef<void(const RankContext& place)> body);

  std::optional<RankEnvironment> environment_;
  std::string arguments_;
  GivenModel given_;
  DeviceConfig device_;
  ParallelConfig parallel_;
  Origins origins_;
  bool have_met_ = false;  // the processes: an error is from now on theirs to tell each other
};

// Reads the arguments and calls body; returns the exit code. Of processes that a launcher started,
// one prints the help, and one says what all of them find wrong. REQUIRES: nothing has used CUDA
// yet.
int run_inference_verb(const VerbSpec& verb, std::span<const std::string> args,
                       FunctionRef<void(const FlagValues& flags, InferenceRanks& ranks)> body);

}  // namespace bev::app
