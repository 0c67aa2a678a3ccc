#include "launch/rank_environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/number_list.h"
#include "launch/slurm_lists.h"

namespace bev {

namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kLastPort = 65535;
// The default port of Megatron-LM's scripts.
constexpr int kUsualPort = 6000;
// Slurm numbers the steps of shells (batch, interactive, extern) from here on.
constexpr uint32_t kFirstShellStep = 0xfffffff0;

// Reads the environment strictly. An empty variable is treated as unset.
class Environment {
 public:
  explicit Environment(const Getenv& getenv) : getenv_(getenv) {}

  std::string text(const char* name) const { return variable_text(getenv_, name); }
  bool has(const char* name) const { return !text(name).empty(); }

  template <class T>
  std::optional<T> number(const char* name, T min, T max) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    const auto parsed = parse_number<T>(value, min, max);
    BEV_CHECK(parsed, Usage,
              "the environment variable {} is \"{}\"; legal is a number from {} to {}", name,
              value.substr(0, 80), min, max);
    return parsed;
  }
  std::optional<int> rank(const char* name) const { return number<int>(name, 0, kMostRanks - 1); }
  std::optional<int> count(const char* name) const { return number<int>(name, 1, kMostRanks); }
  std::optional<int> port(const char* name) const { return number<int>(name, 1, kLastPort); }

 private:
  const Getenv& getenv_;
};

// A number and the variable it comes from, for messages.
struct Named {
  const char* name;
  int value;
};

// The four numbers from one launcher.
struct Numbers {
  Named rank, size, local_rank, local_size;
};

void check_below(const Named& part, const Named& whole) {
  BEV_CHECK(part.value < whole.value, Usage,
            "the environment variable {} is {}, but {} is {}; legal is a number from 0 to {}",
            part.name, part.value, whole.name, whole.value, whole.value - 1);
}

void check_numbers(const Numbers& n) {
  check_below(n.rank, n.size);
  check_below(n.local_rank, n.local_size);
  BEV_CHECK(
      n.local_size.value <= n.size.value, Usage,
      "the environment variable {} is {}, but {} is {}: a machine cannot have more ranks than "
      "the job",
      n.local_size.name, n.local_size.value, n.size.name, n.size.value);
  BEV_CHECK(n.local_rank.value <= n.rank.value, Usage,
            "the environment variable {} is {}, but {} is {}: ranks of this machine are counted "
            "among all",
            n.local_rank.name, n.local_rank.value, n.rank.name, n.rank.value);
}

// Restarts by the launcher, and by Slurm, whose job may run another launcher.
int64_t launcher_restarts(const Environment& env) {
  const char* name =
      env.has("TORCHELASTIC_RUN_ID") ? "TORCHELASTIC_RESTART_COUNT" : "BEVATRON_RESTART";
  return env.number<int64_t>(name, 0, UINT32_MAX).value_or(0);
}
int64_t slurm_restarts(const Environment& env) {
  return env.number<int64_t>("SLURM_RESTART_COUNT", 0, UINT32_MAX).value_or(0);
}

RankEnvironment with_numbers(LaunchedBy by, const Numbers& n) {
  check_numbers(n);
  return {.by = by,
          .rank = n.rank.value,
          .size = n.size.value,
          .local_rank = n.local_rank.value,
          .local_size = n.local_size.value};
}

// The number under `name`, which the launcher sets whenever it sets `because`.
Named required(const char* name, std::optional<int> value, const char* because) {
  BEV_CHECK(value.has_value(), Usage,
            "the environment variable {} is set but {} is not; legal are both or neither", because,
            name);
  return {name, *value};
}

std::optional<RankEnvironment> from_mpirun(const Environment& env) {
  struct Words {
    const char *rank, *size, *local_rank, *local_size, *words;
  };
  // PMI_RANK without MPI_LOCALRANKID is not MPICH's mpirun but srun --mpi=pmi2, which Slurm's own
  // variables describe.
  const Words open_mpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                       "OMPI_COMM_WORLD_LOCAL_SIZE",
                       "OMPI_COMM_WORLD_RANK as Open MPI's mpirun sets it"};
  const Words mpich{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
                    "PMI_RANK and MPI_LOCALRANKID as the mpirun of MPICH and Intel MPI sets them"};
  const bool is_mpich = env.has(mpich.rank) && env.has(mpich.local_rank);
  if (!env.has(open_mpi.rank) && !is_mpich) return std::nullopt;
  const Words& w = env.has(open_mpi.rank) ? open_mpi : mpich;
  RankEnvironment result = with_numbers(
      LaunchedBy::Mpirun, {.rank = required(w.rank, env.rank(w.rank), w.size),
                           .size = required(w.size, env.count(w.size), w.rank),
                           .local_rank = required(w.local_rank, env.rank(w.local_rank), w.rank),
                           .local_size = required(w.local_size, env.count(w.local_size), w.rank)});
  result.job = "mpirun";
  result.words = w.words;
  return result;
}

int tasks_of_this_node(const Environment& env, int size) {
  const int node = env.rank("SLURM_NODEID").value_or(0);
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    if (!env.has(name)) continue;
    const std::vector<int> counts = slurm_counts(env.text(name), name);
    BEV_CHECK(static_cast<size_t>(node) < counts.size(), Usage,
              "SLURM_NODEID is {}, but {} is \"{}\", which names {} nodes", node, name,
              env.text(name).substr(0, 200), counts.size());
    return counts[static_cast<size_t>(node)];
  }
  if (const auto each = env.count("SLURM_NTASKS_PER_NODE")) return *each;
  const int nodes =
      env.count("SLURM_STEP_NUM_NODES").value_or(env.count("SLURM_NNODES").value_or(1));
  BEV_CHECK(size % nodes == 0, Usage,
            "{} tasks of Slurm on {} nodes, and nothing says how many are on this one; legal is "
            "SLURM_STEP_TASKS_PER_NODE as srun sets it",
            size, nodes);
  return size / nodes;
}

std::string first_slurm_host(const Environment& env) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (env.has(name)) return slurm_hosts(env.text(name), name).front();
  throw Error(ErrorKind::Usage,
              "srun started this process on several machines, but neither SLURM_STEP_NODELIST nor "
              "MASTER_ADDR says where the first rank is; legal is MASTER_ADDR=HOST");
}

const char* first_set(const Environment& env, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (env.has(name)) return name;
  return *names.begin();
}

// A task that srun started; not a shell that salloc or sbatch gave.
std::optional<RankEnvironment> from_slurm(const Environment& env) {
  const char* step_name = first_set(env, {"SLURM_STEP_ID", "SLURM_STEPID"});
  const auto step = env.number<int64_t>(step_name, 0, UINT32_MAX);
  if (!step || *step >= kFirstShellStep || !env.has("SLURM_PROCID")) return std::nullopt;
  const char* size_name = first_set(env, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"});
  const Named size = required(size_name, env.count(size_name), "SLURM_PROCID");
  const Named local = required("SLURM_LOCALID", env.rank("SLURM_LOCALID"), "SLURM_PROCID");
  RankEnvironment result = with_numbers(
      LaunchedBy::Slurm,
      {.rank = {"SLURM_PROCID", *env.rank("SLURM_PROCID")},
       .size = size,
       .local_rank = local,
       .local_size = {"SLURM_STEP_TASKS_PER_NODE", tasks_of_this_node(env, size.value)}});
  const char* job_name = first_set(env, {"SLURM_JOB_ID", "SLURM_JOBID"});
  const int64_t job = env.number<int64_t>(job_name, 0, UINT32_MAX).value_or(0);
  result.master_host = env.text("MASTER_ADDR");
  if (result.master_host.empty())
    result.master_host = result.local_size == result.size ? "127.0.0.1" : first_slurm_host(env);
  result.master_port =
      env.port("MASTER_PORT").value_or(static_cast<int>(20000 + (job * 37 + *step) % 20000));
  result.job = format("Slurm job {} step {} restart {}", job, *step, slurm_restarts(env));
  result.words = "SLURM_PROCID and SLURM_STEP_NODELIST as srun sets them";
  return result;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Local rank and local size. If LOCAL_RANK or LOCAL_WORLD_SIZE is unset, the placement of the ranks
// determines it.
std::pair<Named, Named> local_numbers(const Environment& env, int rank, int size,
                                      const std::optional<RankEnvironment>& slurm) {
  const auto local_rank = env.rank("LOCAL_RANK"), local_size = env.count("LOCAL_WORLD_SIZE");
  const bool is_slurm = slurm && slurm->rank == rank && slurm->size == size;
  const bool is_one_node = is_loopback(env.text("MASTER_ADDR"));
  std::optional<int> in_all = local_size;
  if (!in_all && is_slurm) in_all = slurm->local_size;
  if (!in_all && is_one_node) in_all = size;
  // Neither variable is set if every machine, such as a pod, has one process.
  if (!in_all && !local_rank) in_all = 1;
  BEV_CHECK(in_all.has_value(), Usage,
            "the environment variable LOCAL_RANK is {}, but LOCAL_WORLD_SIZE is not set; legal is "
            "the number of ranks on this machine",
            local_rank.value_or(0));
  std::optional<int> which = local_rank;
  if (!which && is_slurm) which = slurm->local_rank;
  if (!which && (*in_all == 1 || size % *in_all == 0)) which = rank % *in_all;
  BEV_CHECK(
      which.has_value(), Usage,
      "the environment variable LOCAL_RANK is not set, and WORLD_SIZE {} is not a multiple of "
      "LOCAL_WORLD_SIZE {}; legal is LOCAL_RANK from 0 to {}",
      size, *in_all, *in_all - 1);
  return {{"LOCAL_RANK", *which}, {"LOCAL_WORLD_SIZE", *in_all}};
}

std::string master_host(const Environment& env, const RankEnvironment& result,
                        const std::optional<RankEnvironment>& slurm) {
  if (env.has("MASTER_ADDR")) return env.text("MASTER_ADDR");
  if (slurm && slurm->rank == result.rank && slurm->size == result.size) return slurm->master_host;
  BEV_CHECK(result.local_size == result.size, Usage,
            "RANK is {} and WORLD_SIZE is {}, but the environment variable MASTER_ADDR is not set; "
            "legal is the name or address of the machine of rank 0",
            result.rank, result.size);
  return "127.0.0.1";
}

// RANK and WORLD_SIZE are both set.
RankEnvironment from_variables(const Environment& env,
                               const std::optional<RankEnvironment>& slurm) {
  const Named rank{"RANK", *env.rank("RANK")}, size{"WORLD_SIZE", *env.count("WORLD_SIZE")};
  check_below(rank, size);
  const auto [local_rank, local_size] = local_numbers(env, rank.value, size.value, slurm);
  RankEnvironment result = with_numbers(
      LaunchedBy::Variables,
      {.rank = rank, .size = size, .local_rank = local_rank, .local_size = local_size});
  result.master_host = master_host(env, result, slurm);
  result.master_port = env.port("MASTER_PORT").value_or(kUsualPort);
  const bool is_torchrun = env.has("TORCHELASTIC_RUN_ID");
  // The agent of torchrun itself listens on MASTER_PORT.
  if (env.text("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    BEV_CHECK(result.master_port < kLastPort, Usage,
              "MASTER_PORT is {}, where torchrun itself listens, and there is no next one for "
              "rank 0; legal is a port from 1 to {}",
              result.master_port, kLastPort - 1);
    ++result.master_port;
  }
  result.job =
      format("job {} restart {}", env.text(is_torchrun ? "TORCHELASTIC_RUN_ID" : "BEVATRON_JOB"),
             launcher_restarts(env));
  result.words = format("RANK, WORLD_SIZE and MASTER_ADDR{}", is_torchrun ? " as torchrun sets them"
                                                              : env.has("BEVATRON_RESTART")
                                                                  ? " as bevatron launch sets them"
                                                                  : "");
  return result;
}

// Whether RANK and WORLD_SIZE, if set, match the launcher's numbers.
bool agrees(const Environment& env, const RankEnvironment& launcher) {
  return env.rank("RANK").value_or(launcher.rank) == launcher.rank &&
         env.count("WORLD_SIZE").value_or(launcher.size) == launcher.size;
}

std::string as_set(const Environment& env, const char* name) {
  return env.has(name) ? env.text(name).substr(0, 80) : "not set";
}

[[noreturn]] void refuse_contradiction(const Environment& env, const RankEnvironment& launcher) {
  throw Error(
      ErrorKind::Usage,
      format(
          "this process is rank {} of {} by {}, but RANK is {}, WORLD_SIZE is {}, MASTER_ADDR is "
          "{} and MASTER_PORT is {}; legal are RANK and WORLD_SIZE that say the same or are not "
          "set, or all four, which then win",
          launcher.rank, launcher.size, launcher.words, as_set(env, "RANK"),
          as_set(env, "WORLD_SIZE"), as_set(env, "MASTER_ADDR"), as_set(env, "MASTER_PORT")));
}

std::optional<RankEnvironment> of_any_size(const Environment& env) {
  const bool has_both = env.has("RANK") && env.has("WORLD_SIZE");
  if (auto mpi = from_mpirun(env)) {
    if (agrees(env, *mpi)) return mpi;
    // A script under mpirun that numbers processes by itself, such as one that starts torchrun.
    if (has_both && env.has("MASTER_ADDR") && env.has("MASTER_PORT"))
      return from_variables(env, std::nullopt);
    refuse_contradiction(env, *mpi);
  }
  auto slurm = from_slurm(env);
  if (has_both) return from_variables(env, slurm);
  if (slurm) {
    if (!agrees(env, *slurm)) refuse_contradiction(env, *slurm);
    return slurm;
  }
  const bool is_half = env.has("RANK") || env.count("WORLD_SIZE").value_or(1) > 1;
  BEV_CHECK(!is_half, Usage,
            "RANK is {} and WORLD_SIZE is {} in the environment; legal are both or neither",
            as_set(env, "RANK"), as_set(env, "WORLD_SIZE"));
  return std::nullopt;
}

}  // namespace

std::optional<RankEnvironment> rank_environment(const Getenv& getenv) {
  auto found = of_any_size(Environment(getenv));
  if (found && found->size == 1) return std::nullopt;
  if (found) found->restarts = restarts_of_job(getenv);
  return found;
}

int64_t restarts_of_job(const Getenv& getenv) {
  const Environment env(getenv);
  return launcher_restarts(env) + slurm_restarts(env);
}

namespace {

// Variables that ranks must not inherit: an outer launcher set them for this process, not for its
// ranks.
bool is_of_another_launcher(std::string_view variable) {
  constexpr std::array<std::string_view, 6> kPrefixes{
      "OMPI_", "PMIX_", "PMI_", "MPI_LOCALRANK", "MPI_LOCALNRA", "TORCHELASTIC_"};
  constexpr std::array<std::string_view, 11> kNames{
      "RANK",         "LOCAL_RANK",       "WORLD_SIZE",      "LOCAL_WORLD_SIZE",
      "GROUP_RANK",   "GROUP_WORLD_SIZE", "MASTER_ADDR",     "MASTER_PORT",
      "BEVATRON_JOB", "BEVATRON_SECRET",  "BEVATRON_RESTART"};
  const std::string_view name = variable.substr(0, variable.find('='));
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> inherited_variables() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!is_of_another_launcher(*variable)) variables.emplace_back(*variable);
  return variables;
}

std::vector<std::string> rank_variables(const RankEnvironment& rank, int node,
                                        const std::string& secret) {
  return {format("RANK={}", rank.rank),
          format("LOCAL_RANK={}", rank.local_rank),
          format("WORLD_SIZE={}", rank.size),
          format("LOCAL_WORLD_SIZE={}", rank.local_size),
          format("GROUP_RANK={}", node),
          format("MASTER_ADDR={}", rank.master_host),
          format("MASTER_PORT={}", rank.master_port),
          format("BEVATRON_SECRET={}", secret),
          format("BEVATRON_JOB={}", rank.job),
          format("BEVATRON_RESTART={}", rank.restarts)};
}

}  // namespace bev
