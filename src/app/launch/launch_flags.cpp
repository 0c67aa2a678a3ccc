#include "app/launch/launch_flags.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "app/cli/cli_flags.h"
#include "base/check.h"
#include "base/number_list.h"
#include "config/megatron/megatron_scripts.h"
#include "config/parse/arg_scanner.h"

namespace bev::app {

namespace {

constexpr int kUsualPort = 29500;  // as torchrun
constexpr int kMostNodes = 1 << 20;

constexpr std::array<VerbFlag, 21> kLaunchFlagsFlags{{
    {"--nproc-per-node", "N|auto|gpu|cpu",
     "processes on this machine. gpu: one for each GPU; cpu: one for each NUMA node; auto: gpu "
     "where "
     "there is one, else cpu. Without it: 1"},
    {"--nnodes", "N|MIN:MAX",
     "machines; the same command runs on each. MIN:MAX: the launchers meet before each attempt, "
     "and "
     "so many of those that came take part as the configuration allows"},
    {"--node-rank", "N", "which of them this is, from 0; Slurm and mpirun say it too"},
    {"--master-addr", "HOST", "where rank 0 is; one machine: 127.0.0.1"},
    {"--master-port", "PORT", "where it listens. Several machines: 29500; one: a free port"},
    {"--rdzv-endpoint", "HOST[:PORT]", "another way to say both"},
    {"--rdzv-id", "TEXT", "a name of the job, the same on all machines"},
    {"--rdzv-backend", "c10d|static", "accepted: there is one way to meet"},
    {"--rdzv-conf", "TEXT", "accepted and not used"},
    {"--standalone", "", "one machine, as without it"},
    {"--max-restarts", "N",
     "how often all processes are started again when one fails; a training then continues from its "
     "own checkpoints. Without it: 0"},
    {"--max-idle-restarts", "N",
     "give up when so many attempts in a row made no new checkpoint; 0: never. Without it: 3"},
    {"--last-call", "SECONDS",
     "with --nnodes MIN:MAX, how long machines beyond MIN are waited for. Without it: 30"},
    {"--join-timeout", "MINUTES", "the same for MIN machines. Without it: 10"},
    {"--monitor-interval", "SECONDS", "accepted: a failure is noticed at once"},
    {"--tee", "STREAMS",
     "0: none, 1: stdout, 2: stderr, 3: both, or for some local ranks 0:3,1:2; their lines are "
     "printed with the rank before them and go to files too where --log-dir is given. -t is the "
     "same"},
    {"--redirects", "STREAMS", "the same numbers: these go to files only. -r is the same"},
    {"--log-dir", "FOLDER", "where they go: attempt_0/RANK/stdout.log and stderr.log"},
    {"--role", "NAME", "accepted and not used"},
    {"--start-method", "NAME", "accepted and not used"},
    {"--no-python", "", "accepted: nothing here is Python"},
}};

constexpr VerbSpec kLaunch{
    .name = "launch",
    .summary =
        "Starts several processes of bevatron, or of another program, on this machine, each with "
        "its "
        "rank in RANK, LOCAL_RANK, WORLD_SIZE and where to meet in MASTER_ADDR and MASTER_PORT, "
        "and "
        "ends them all when one fails. Takes the flags of torchrun: where a script says `torchrun "
        "... "
        "pretrain_bert.py ARGS`, write `bevatron launch ... pretrain_bert.py ARGS`, which trains. "
        "Names of flags may have _ for -. The exit code is that of the process that failed first, "
        "128 + N when signal N "
        "killed "
        "it.",
    .flags = kLaunchFlagsFlags,
    .positional = "VERB|pretrain_gpt.py|pretrain_bert.py|PROGRAM [ARGS ...]",
    .min_positional = 0,
    .max_positional = 0};

[[noreturn]] void refuse(const std::string& what, const std::string& legal) {
  throw Error(ErrorKind::Usage, format("{}; legal is {}", what, legal));
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
}

// The spelling that is declared.
std::string own_spelling(std::string arg) {
  if (arg == "-r") return "--redirects";
  if (arg == "-t") return "--tee";
  if (!arg.starts_with("--")) return arg;
  const size_t end = std::min(arg.find('='), arg.size());
  std::replace(arg.begin(), arg.begin() + static_cast<ptrdiff_t>(end), '_', '-');
  return arg;
}

struct Halves {
  std::vector<std::string> flags, command;
};

Halves divide(std::span<const std::string> args) {
  Halves halves;
  ArgScanner scan(args, [](std::string_view arg) { return arg.starts_with('-'); });
  while (!scan.rest().empty() && !scan.has_value()) {
    const std::string arg = own_spelling(scan.take());
    if (arg == "--") break;
    // torchrun's own way to run a module of Python.
    if (arg == "-m" || arg == "--module")
      refuse(format("{} runs a module of Python", arg),
             "a verb of bevatron, or the path of a program");
    halves.flags.push_back(arg);
    const VerbFlag* declared = find_flag(kLaunchFlagsFlags, arg);
    const bool takes_value = declared != nullptr && !declared->value.empty();
    if (takes_value && !scan.rest().empty()) halves.flags.push_back(scan.take());
  }
  halves.command.assign(scan.rest().begin(), scan.rest().end());
  return halves;
}

// Flags, and torchrun's variables for those that are not given.
class Given {
 public:
  Given(const FlagValues& flags, const Getenv& getenv) : flags_(flags), getenv_(getenv) {}

  bool has(std::string_view flag) const { return !text(flag).empty(); }
  std::string text(std::string_view flag) const {
    if (flags_.has(flag)) return flags_.text(flag);
    return variable(torchruns_name(flag).c_str());
  }
  std::string variable(const char* name) const { return variable_text(getenv_, name); }
  int number(std::string_view flag, int otherwise, int min, int max) const {
    const std::string value = text(flag);
    if (value.empty()) return otherwise;
    const auto parsed = parse_number<int>(value, min, max);
    const bool is_variable = !flags_.has(flag);
    if (!parsed)
      refuse(format("{} is \"{}\"", is_variable ? torchruns_name(flag) : std::string(flag),
                    value.substr(0, 80)),
             format("a number from {} to {}", min, max));
    return *parsed;
  }

 private:
  static std::string torchruns_name(std::string_view flag) {
    std::string name = "PET_";
    for (const char c : flag.substr(2))
      name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
  }

  const FlagValues& flags_;
  const Getenv& getenv_;
};

void read_processes(const Given& given, LaunchRequest& request) {
  const std::string text = given.text("--nproc-per-node");
  if (text.empty()) return;
  if (text == "auto") {
    request.kind = ProcessKind::Auto;
  } else if (text == "gpu") {
    request.kind = ProcessKind::Gpu;
  } else if (text == "cpu") {
    request.kind = ProcessKind::Cpu;
  } else if (const auto count = parse_number<int>(text, 1, 4096)) {
    request.processes = *count;
  } else {
    refuse(format("--nproc-per-node is \"{}\"", text.substr(0, 80)),
           "a number from 1 to 4096, auto, gpu or cpu");
  }
}

// Which machine this is, where the command line does not say.
std::optional<int> node_by_launcher(const Given& given, int nodes) {
  const auto number = [&](const char* name) {
    return parse_number<int>(given.variable(name), 0, nodes - 1);
  };
  if (given.variable("OMPI_COMM_WORLD_SIZE") == std::to_string(nodes))
    return number("OMPI_COMM_WORLD_RANK");
  // One of us on each node of a step.
  if (given.variable("SLURM_STEP_NUM_TASKS") == std::to_string(nodes))
    return number("SLURM_PROCID");
  return number("GROUP_RANK");
}

void read_nodes(const Given& given, LaunchRequest& request) {
  const std::string nodes = given.has("--nnodes") ? given.text("--nnodes") : "1";
  const size_t colon = nodes.find(':');
  const auto least = parse_number<int>(nodes.substr(0, colon), 1, kMostNodes);
  const auto most = colon == std::string::npos
                        ? least
                        : parse_number<int>(nodes.substr(colon + 1), 1, kMostNodes);
  if (!least || !most || *least > *most)
    refuse(format("--nnodes is \"{}\"", nodes.substr(0, 80)),
           format("a number from 1 to {}, or MIN:MAX with two of them", kMostNodes));
  request.nodes = *most;
  request.least_nodes = *least;
  const bool is_given = given.has("--node-rank");
  // Where their number may change, machines in reserve have numbers too.
  request.node =
      given.number("--node-rank", 0, 0, request.is_elastic() ? kMostNodes - 1 : request.nodes - 1);
  if (request.nodes == 1 || is_given || request.only_checks()) return;
  const auto found = node_by_launcher(given, request.nodes);
  if (!found)
    refuse(
        format("{} machines, and nothing says which of them this is", request.nodes),
        format("--node-rank from 0 to {}, another on each; machine 0 is the one that --master-addr "
               "or --rdzv-endpoint names",
               request.nodes - 1));
  request.node = *found;
}

// HOST, HOST:PORT, [::1]:PORT.
void read_endpoint(const std::string& text, LaunchRequest& request) {
  const size_t colon = text.rfind(':');
  const bool is_bracketed = text.starts_with('[');
  const size_t close = text.find(']');
  const bool has_port =
      colon != std::string::npos &&
      (is_bracketed ? close != std::string::npos && colon == close + 1 : text.find(':') == colon);
  std::string host = has_port ? text.substr(0, colon) : text;
  if (is_bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto port =
      has_port ? parse_number<int>(text.substr(colon + 1), 0, 65535) : std::optional<int>(0);
  if (host.empty() || !port)
    refuse(format("--rdzv-endpoint is \"{}\"", text.substr(0, 200)),
           "HOST or HOST:PORT with a port from 0 to 65535");
  request.master_host = host;
  request.master_port = *port;
}

void read_master(const Given& given, LaunchRequest& request) {
  if (given.has("--rdzv-endpoint")) read_endpoint(given.text("--rdzv-endpoint"), request);
  if (given.has("--master-addr")) request.master_host = given.text("--master-addr");
  request.master_port = given.number("--master-port", request.master_port, 0, 65535);
  if (request.nodes == 1) {
    // A name of this machine may lead to an interface that others can reach.
    if (request.master_host.empty()) request.master_host = "127.0.0.1";
    return;
  }
  if (request.only_checks()) return;
  if (request.master_host.empty())
    refuse(format("{} machines, and nothing says where they meet", request.nodes),
           "--master-addr HOST or --rdzv-endpoint HOST:PORT, the same on all");
  if (request.master_port == 0) request.master_port = kUsualPort;
  if (request.is_elastic() && request.master_port == 65535)
    refuse("--master-port 65535, and launchers meet at the next port", "a port from 1 to 65534");
}

}  // namespace

bool LaunchRequest::only_checks() const {
  const size_t words = script_prefix(command).words;
  const MegatronScript* script =
      words < command.size() ? find_megatron_script(command[words]) : nullptr;
  const bool trains = command[0] == "train" || (script != nullptr && script->verb == "train");
  return trains && std::ranges::find(command, "--dry-run") != command.end();
}

std::optional<LaunchRequest> launch_request(std::span<const std::string> args,
                                            const Getenv& getenv) {
  Halves halves = divide(args);
  const auto flags = flags_for(kLaunch, halves.flags);
  if (!flags) return std::nullopt;
  const Given given(*flags, getenv);
  LaunchRequest request;
  if (halves.command.empty())
    refuse("there is nothing to launch",
           "bevatron launch [--flag VALUE ...] VERB|PROGRAM [ARGS ...]");
  request.command = std::move(halves.command);
  flags->require_not_both("--standalone", "--rdzv-endpoint");
  flags->require_not_both("--rdzv-endpoint", "--master-addr");
  read_processes(given, request);
  read_nodes(given, request);
  if (flags->has("--standalone") && request.nodes != 1)
    refuse(format("--standalone with --nnodes {}", request.nodes),
           "one machine, or no --standalone");
  read_master(given, request);
  const std::string backend = flags->text("--rdzv-backend", "static");
  if (backend != "c10d" && backend != "static")
    refuse(format("--rdzv-backend {} needs a server of its own", backend.substr(0, 80)),
           "c10d or static, or none");
  for (const VerbFlag& flag : kLaunchFlagsFlags)
    if (flag.help.starts_with("accepted and") && flags->has(flag.name))
      request.notes.push_back(format("{} changes nothing here", flag.name));
  if (backend == "c10d")
    request.notes.emplace_back("--rdzv-backend c10d: processes meet at rank 0 itself");
  flags->real("--monitor-interval", 1, 0, 1e9);
  request.max_restarts = given.number("--max-restarts", 0, 0, 1000000);
  request.max_idle_restarts = given.number("--max-idle-restarts", 3, 0, 1000000);
  request.last_call = milliseconds(flags->real("--last-call", 30, 0, 1e6));
  request.join_timeout = milliseconds(60 * flags->real("--join-timeout", 10, 0, 1e6));
  if (request.is_elastic() && request.max_restarts == 0)
    request.notes.push_back(
        format("--nnodes {} without --max-restarts: a machine that is gone ends the job",
               given.text("--nnodes")));
  request.job = given.text("--rdzv-id");
  request.tee = given.text("--tee");
  request.redirects = given.text("--redirects");
  request.log_folder = flags->path("--log-dir");
  return request;
}

std::vector<int> streams_by_rank(const std::string& text, std::string_view flag, int count) {
  std::vector<int> streams(static_cast<size_t>(count), 0);
  if (text.empty()) return streams;
  const auto refuse_text = [&](std::string_view part) {
    refuse(format("{} is \"{}\", where \"{}\" means nothing", flag, text.substr(0, 80),
                  part.substr(0, 80)),
           format("0 to 3 for all, or RANK:0 to RANK:3 with local ranks from 0 to {}, divided by "
                  "commas",
                  count - 1));
  };
  if (const auto all = parse_number<int>(text, 0, 3)) {
    std::fill(streams.begin(), streams.end(), *all);
    return streams;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t colon = part.find(':');
    const auto rank = parse_number<int>(part.substr(0, colon), 0, count - 1);
    const auto value =
        colon == std::string::npos ? std::nullopt : parse_number<int>(part.substr(colon + 1), 0, 3);
    if (!rank || !value) refuse_text(part);
    streams[static_cast<size_t>(*rank)] = *value;
    begin = end + 1;
  }
  return streams;
}

}  // namespace bev::app
