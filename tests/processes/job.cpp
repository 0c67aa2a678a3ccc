#include "processes/job.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

extern char** environ;

namespace bev::test {

namespace {

std::string whole_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A port on which no process listens now. It is below the range of ephemeral ports
// (net.ipv4.ip_local_port_range begins at 32768), so that the kernel does not use it for outgoing
// connections.
int free_port() {
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int port = 20000 + static_cast<int>(random() % 12000);
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<uint16_t>(port));
    const bool is_free =
        ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(descriptor);
    if (is_free) return port;
  }
  return 0;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

bool has_variable(const std::string& environment, const std::string& variable) {
  return environment.starts_with(variable + '\0') ||
         environment.find('\0' + variable + '\0') != std::string::npos;
}

std::string environment_of(const std::string& process) {
  return whole_file("/proc/" + process + "/environ");
}

// Variables that the program would take for a launcher's.
bool is_of_a_launcher(const std::string& variable) {
  for (const char* prefix : {"RANK=", "WORLD_SIZE=", "LOCAL_", "MASTER_", "BEVATRON_", "OMPI_",
                             "PMI", "SLURM_", "GROUP_RANK=", "TORCHELASTIC_"})
    if (variable.starts_with(prefix)) return true;
  return false;
}

}  // namespace

std::string name_of(Start start) {
  switch (start) {
    case Start::Launch: return "launch";
    case Start::Mpirun: return "mpirun";
    case Start::Hand: return "hand";
  }
  return "";
}

std::string why_not(Start start) {
  const bool is_mpi = start == Start::Mpirun;
  if (is_mpi && std::system("command -v mpirun >/dev/null") != 0) return "there is no mpirun";
  const std::string engine = is_mpi ? "mpi" : "gloo";
  const auto folder = std::filesystem::path(BEV_PROGRAM).parent_path();
  if (!std::filesystem::exists(folder / ("libbevatron-" + engine + ".so")))
    return "this build has no " + engine + " engine";
  return "";
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> small_training(int64_t iterations) {
  return {"--data.mock",    "true", "--num-layers",          "2",
          "--hidden-size",  "64",   "--num-attention-heads", "4",
          "--seq-length",   "32",   "--micro-batch-size",    "1",
          "--lr",           "1e-3", "--global-batch-size",   "4",
          "--device",       "cpu",  "--model.vocab",         "100",
          "--log-interval", "1",    "--train-iters",         std::to_string(iterations)};
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string last_loss(const std::string& log) {
  const std::string before = "| lm loss: ";
  const size_t at = log.rfind(before);
  if (at == std::string::npos) return "";
  const size_t first = at + before.size();
  return log.substr(first, log.find(' ', first) - first);
}

Job::Job(int ranks) : ranks_(ranks), port_(free_port()) {
  static int jobs = 0;
  mark_ = "BEVTEST_JOB=" + std::to_string(::getpid()) + "-" + std::to_string(jobs++);
}

Job::~Job() {
  for (const double until = seconds_now() + 10; seconds_now() < until; pause(0.01)) {
    collect();
    const std::vector<pid_t> left = running();
    for (const pid_t process : left) ::kill(process, SIGKILL);
    if (left.empty()) break;
  }
}

void Job::start(const std::vector<std::string>& command,
                const std::map<std::string, std::string>& variables, const std::string& folder) {
  std::vector<std::string> environment{mark_};
  for (char** each = environ; *each != nullptr; ++each)
    if (!is_of_a_launcher(*each)) environment.emplace_back(*each);
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  const std::vector<char*> arguments = pointers(command), all = pointers(environment);
  const std::string out = folder_ / "out", err = folder_ / "err";
  const pid_t process = ::fork();
  if (process == 0) {
    constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND;
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(::open(out.c_str(), kAppend, 0644), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), kAppend, 0644), STDERR_FILENO);
    ::execvpe(arguments[0], arguments.data(), all.data());
    ::_exit(127);
  }
  ASSERT_GT(process, 0) << std::strerror(errno);
  children_.push_back({.process = process});
}

void Job::train_rank(int rank, const std::vector<std::string>& more, const std::string& folder) {
  start(std::vector<std::string>{BEV_PROGRAM, "train", "--train.output", output().string()} +
            small_training(1'000'000) + more,
        {{"RANK", std::to_string(rank)},
         {"WORLD_SIZE", std::to_string(ranks_)},
         {"LOCAL_RANK", std::to_string(rank)},
         {"LOCAL_WORLD_SIZE", std::to_string(ranks_)},
         {"MASTER_ADDR", "127.0.0.1"},
         {"MASTER_PORT", std::to_string(port_)},
         {"BEVATRON_SECRET", secret}},
        folder);
}

void Job::train(Start how, const std::vector<std::string>& more) {
  const std::vector<std::string> command =
      std::vector<std::string>{"train", "--train.output", output().string()} +
      small_training(1'000'000) + more;
  const std::string ranks = std::to_string(ranks_);
  switch (how) {
    case Start::Launch:
      start(std::vector<std::string>{BEV_PROGRAM, "launch", "--nproc-per-node", ranks} + command,
            {});
      break;
    case Start::Mpirun:
      start(std::vector<std::string>{"mpirun", "--allow-run-as-root", "--oversubscribe",
                                     "--bind-to", "none", "-n", ranks, BEV_PROGRAM} +
                command,
            {});
      break;
    case Start::Hand:
      for (int rank = 0; rank < ranks_; ++rank) train_rank(rank, more);
      break;
  }
}

std::string Job::printed(const char* name) const { return whole_file(folder_ / name); }

std::string Job::log(int rank) const {
  std::string name = std::to_string(rank);
  name.insert(0, 5 - name.size(), '0');
  return whole_file(output() / "logs" / ("rank-" + name + ".log"));
}

bool Job::await(const char* file, const std::string& text, double seconds) {
  for (const double until = seconds_now() + seconds; seconds_now() < until; pause(0.005)) {
    if (printed(file).find(text) != std::string::npos) return true;
    collect();
    if (running().empty()) break;
  }
  if (printed(file).find(text) != std::string::npos) return true;
  ADD_FAILURE() << "std" << file << " has no '" << text << "'\n--- out\n"
                << out() << "--- err\n"
                << err();
  return false;
}

bool Job::await_err(const std::string& text, double seconds) { return await("err", text, seconds); }
bool Job::await_out(const std::string& text, double seconds) { return await("out", text, seconds); }

std::vector<pid_t> Job::running() const {
  std::vector<pid_t> found;
  // Between fork and exec a child does not have the mark yet.
  for (const Child& child : children_)
    if (!child.code) found.push_back(child.process);
  DIR* all = ::opendir("/proc");
  while (const dirent* entry = ::readdir(all)) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // A zombie has an empty environment.
    if (!has_variable(environment_of(name), mark_)) continue;
    if (std::find(found.begin(), found.end(), std::stoi(name)) == found.end())
      found.push_back(std::stoi(name));
  }
  ::closedir(all);
  return found;
}

pid_t Job::process_of(int rank) const {
  for (const pid_t process : running()) {
    const std::string environment = environment_of(std::to_string(process));
    for (const char* name : {"RANK=", "OMPI_COMM_WORLD_RANK="})
      if (has_variable(environment, name + std::to_string(rank))) return process;
  }
  return -1;
}

void Job::signal(int rank, int number) const {
  const pid_t process = process_of(rank);
  ASSERT_GT(process, 0) << "rank " << rank << " does not run\n" << err();
  ASSERT_EQ(::kill(process, number), 0) << std::strerror(errno);
}

void Job::collect() {
  for (Child& child : children_) {
    int status = 0;
    if (child.code || ::waitpid(child.process, &status, WNOHANG) != child.process) continue;
    child.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

std::optional<double> Job::await_end(double limit) {
  const double start = seconds_now();
  for (;;) {
    collect();
    if (running().empty()) break;
    if (seconds_now() - start > limit) return std::nullopt;
    pause(0.005);
  }
  return seconds_now() - start;
}

const std::vector<Child>& Job::children() {
  collect();
  return children_;
}

}  // namespace bev::test
