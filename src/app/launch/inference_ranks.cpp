#include "app/launch/inference_ranks.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "app/cli/shared_flags.h"
#include "app/launch/launched_rank.h"
#include "base/check.h"
#include "comm/thread_communicator.h"
#include "config/parse/toml.h"
#include "config/rules/config_check.h"

namespace bev::app {

namespace {

// Where ranks are threads.
constexpr int64_t kMostInferenceThreads = 256;
constexpr int64_t kMostInferenceRanks = 1 << 20;

// A number of ranks by one of its two names, and which.
int64_t ranks_flag(const FlagValues& flags, const VerbFlag& own, const VerbFlag& megatron,
                   std::string_view field, Origins& origins) {
  flags.require_not_both(own.name, megatron.name);
  const std::string_view name = flags.has(megatron.name) ? megatron.name : own.name;
  if (flags.has(name))
    origins[std::string(field)] = {.kind = OriginKind::Flag, .text = std::string(name)};
  return flags.integer(name, 1, 1, kMostInferenceRanks);
}

bool has_flag(const VerbSpec& verb, const VerbFlag& flag) {
  return std::any_of(verb.flags.begin(), verb.flags.end(),
                     [&](const VerbFlag& each) { return each.name == flag.name; });
}

int64_t copies_of_model(const VerbSpec& verb, const FlagValues& flags,
                        const std::optional<RankEnvironment>& environment, int64_t model_ranks) {
  if (!has_flag(verb, kDataFlag)) return 1;
  const int64_t most = environment ? environment->size / model_ranks : 1;
  return flags.integer(kDataFlag.name, std::max<int64_t>(1, most), 1, kMostInferenceRanks);
}

// Ranks that share a GPU disturb each other's timing.
DeviceConfig inference_device(const Config& config, bool shares_gpu) {
  DeviceConfig device = config.device;
  device.threads = threads_of_rank(config);
  if (shares_gpu) device.autotune = false;
  return device;
}

}  // namespace

InferenceRanks::InferenceRanks(const VerbSpec& verb, const FlagValues& flags,
                               std::optional<RankEnvironment> environment, std::string arguments,
                               GivenModel given)
    : environment_(std::move(environment)),
      arguments_(std::move(arguments)),
      given_(std::move(given)),
      device_(device_from_flags(flags)) {
  parallel_.tensor =
      ranks_flag(flags, kTensorFlag, kMegatronTensorFlag, "parallel.tensor", origins_);
  parallel_.pipeline =
      ranks_flag(flags, kPipelineFlag, kMegatronPipelineFlag, "parallel.pipeline", origins_);
  const int64_t model_ranks = parallel_.tensor * parallel_.pipeline;
  const int64_t copies = copies_of_model(verb, flags, environment_, model_ranks);
  parallel_.ranks = model_ranks * copies;
  if (environment_) {
    BEV_CHECK(environment_->size == parallel_.ranks, Usage,
              "the launcher started {} processes, but the model is asked for on {} tensor x {} "
              "pipeline{} = {} ranks; legal are --tensor and --pipeline whose product {} {}",
              environment_->size, parallel_.tensor, parallel_.pipeline,
              copies > 1 ? format(" x {} data-parallel", copies) : "", parallel_.ranks,
              has_flag(verb, kDataFlag) ? "divides" : "is", environment_->size);
  } else {
    BEV_CHECK(parallel_.ranks <= kMostInferenceThreads, Usage,
              "{} tensor x {} pipeline = {} ranks, each a thread of this process; legal are 1 to "
              "{}, and more where a launcher starts a process for each (docs/launching.md)",
              parallel_.tensor, parallel_.pipeline, parallel_.ranks, kMostInferenceThreads);
  }
}

InferenceSetup InferenceRanks::use_of(const ModelFolder& folder, int64_t sequences,
                                      int64_t length) const {
  given_.require_same(folder);
  InferenceSetup use{
      .device = device_, .parallel = parallel_, .sequences = sequences, .length = length};
  Origins origins = origins_;
  for (const char* field : {"model.layers", "model.heads", "model.kv_heads", "model.ffn"})
    origins[field] = {.kind = OriginKind::File, .text = folder.weights.string()};
  throw_if_any(check_config(config_of_use(folder, use), Purpose::Plan, origins),
               "the use of the model");
  return use;
}

void InferenceRanks::run(const ModelFolder& folder, const InferenceSetup& use,
                         FunctionRef<void(const RankContext& place)> body) {
  const Config config = config_of_use(folder, use);
  if (environment_) {
    run_process(config, body);
  } else {
    run_threads(config, body);
  }
}

void InferenceRanks::run_process(const Config& config,
                                 FunctionRef<void(const RankContext& place)> body) {
  const Console console(prints());
  LaunchedRank launched(*environment_, config, console);
  have_met_ = true;
  launched.run([&] {
    launched.require_same_on_ranks("the command line", arguments_);
    launched.require_same_on_ranks("the model", print_config(config, {}));
    Config own = config;
    own.device.threads = launched.threads(config.device.threads);
    const std::unique_ptr<Device> device =
        make_device(inference_device(own, launched.shares_gpu()));
    const std::unique_ptr<Communicator> world = launched.make_world(*device);
    body({*device, *world, launched.rank() == 0});
  });
}

void InferenceRanks::run_threads(const Config& config,
                                 FunctionRef<void(const RankContext& place)> body) {
  const std::chrono::duration<double, std::ratio<60>> limit(config.parallel.timeout_minutes);
  const auto ranks = static_cast<int>(config.parallel.ranks);
  run_ranks(ranks, std::chrono::duration_cast<std::chrono::milliseconds>(limit),
            [&](Communicator& world) {
              const std::unique_ptr<Device> device =
                  make_device(inference_device(config, ranks > 1));
              body({*device, world, world.rank() == 0});
            });
}

int run_inference_verb(const VerbSpec& verb, std::span<const std::string> args,
                       FunctionRef<void(const FlagValues& flags, InferenceRanks& ranks)> body) {
  const std::optional<RankEnvironment> environment = own_environment();
  std::optional<InferenceRanks> ranks;
  try {
    const bool prints = !environment || environment->rank == 0;
    GivenModel given(verb, args);
    const auto flags = flags_for(verb, given.args(), prints);
    if (!flags) return 0;
    if (prints)
      for (const std::string& note : given.notes()) print_stderr("bevatron: note: {}\n", note);
    std::string arguments;
    for (const std::string& arg : args) arguments += arg + "\n";
    ranks.emplace(verb, *flags, environment, std::move(arguments), std::move(given));
    body(*flags, *ranks);
  } catch (const Error& error) {
    if (!environment || (ranks && ranks->have_met_)) throw;
    return report_once(*environment, error);
  }
  return 0;
}

}  // namespace bev::app
