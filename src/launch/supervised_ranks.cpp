#include "launch/supervised_ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/check.h"
#include "base/clock.h"
#include "launch/rank_environment.h"
#include "launch/rank_process.h"
#include "launch/supervisor.h"

namespace bev {

namespace {

std::string own_error_name(int code) {
  for (const ErrorKind kind : {ErrorKind::Usage, ErrorKind::Data, ErrorKind::Device,
                               ErrorKind::Comm, ErrorKind::Numerics, ErrorKind::Internal})
    if (exit_code(kind) == code) return format(" ({} error)", name_of(kind));
  return "";
}

bool is_bad(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

bool was_let_down(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == exit_code(ErrorKind::Comm);
}

// The end of a file of text, some lines.
std::vector<std::string> last_lines_of(const std::filesystem::path& path) {
  constexpr std::streamoff kBytes = 4096;
  constexpr size_t kLines = 12;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  std::vector<std::string> lines;
  if (!file || size <= 0) return lines;
  file.seekg(std::max<std::streamoff>(0, size - kBytes));
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return lines;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return format("SIG{}", name == nullptr ? "?" : name);
}

std::string exit_status_text(int status, bool is_own_program) {
  if (WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    return format("exit code {}{}", code, is_own_program ? own_error_name(code) : "");
  }
  const int signal = WTERMSIG(status);
  const char* hint = signal == SIGKILL ? ", which the system also sends where memory runs out" : "";
  return format("killed by signal {} ({}){}", signal, signal_name(signal), hint);
}

SupervisedRanks::SupervisedRanks(const LaunchJob& job, int attempt, const sigset_t& signals)
    : job_(job),
      port_(job.master_port != 0 ? job.master_port : free_port()),
      out_(job.out),
      err_(job.err) {
  const std::vector<std::string> inherited = inherited_variables();
  const auto count = static_cast<size_t>(job.local_size);
  ranks_.reserve(count);
  relays_.resize(2 * count);
  try {
    for (size_t rank = 0; rank < count; ++rank) start(rank, attempt, signals, inherited);
  } catch (...) {
    stop_all();
    throw;
  }
}

SupervisedRanks::~SupervisedRanks() { stop_all(); }

void SupervisedRanks::stop_all() {
  send(SIGKILL, true);
  for (const Rank& rank : ranks_)
    if (!rank.end) await_end(rank.process);
}

SupervisedRanks::Stream SupervisedRanks::open_stream(size_t local_rank, int attempt,
                                                     bool is_error) {
  const RankOutput& wanted = job_.outputs[local_rank];
  const int bit = is_error ? 2 : 1;
  const bool is_tee = (wanted.tee & bit) != 0, is_redirect = (wanted.redirect & bit) != 0;
  if (!is_tee && !is_redirect) return {.descriptor = is_error ? job_.err : job_.out};

  const size_t rank = static_cast<size_t>(job_.first_rank) + local_rank;
  Stream stream;
  if (!job_.log_folder.empty()) {
    const auto folder = job_.log_folder / format("attempt_{}", attempt) / std::to_string(rank);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    stream.file = folder / (is_error ? "stderr.log" : "stdout.log");
    stream.owner =
        Descriptor(::open(stream.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    BEV_CHECK(stream.owner.is_open(), Data, "cannot write the log {}: {}", stream.file.string(),
              std::strerror(errno));
  }
  if (is_tee) {
    std::array<int, 2> pipe{};
    BEV_CHECK(::pipe2(pipe.data(), O_CLOEXEC) == 0, Device, "cannot make a pipe: {}",
              std::strerror(errno));
    relays_[2 * local_rank + (is_error ? 1 : 0)].emplace(
        Descriptor(pipe[0]), std::exchange(stream.owner, Descriptor(pipe[1])),
        is_error ? err_ : out_, format("[rank{}]: ", rank));
  }
  BEV_CHECK(stream.owner.is_open(), Internal, "a stream is redirected to no file");
  stream.descriptor = stream.owner.get();
  return stream;
}

void SupervisedRanks::start(size_t local_rank, int attempt, const sigset_t& signals,
                            const std::vector<std::string>& inherited) {
  const size_t rank = static_cast<size_t>(job_.first_rank) + local_rank;
  const Stream out = open_stream(local_rank, attempt, false);
  const Stream err = open_stream(local_rank, attempt, true);
  ProcessStart begin{.command = job_.command,
                     .environment = inherited,
                     .out = out.descriptor,
                     .err = err.descriptor,
                     .signals = signals};
  const std::vector<std::string> own = rank_variables({.rank = static_cast<int>(rank),
                                                       .size = job_.size,
                                                       .local_rank = static_cast<int>(local_rank),
                                                       .local_size = job_.local_size,
                                                       .master_host = job_.master_host,
                                                       .master_port = port_,
                                                       .job = job_.job,
                                                       .restarts = attempt},
                                                      job_.node, job_.secret);
  begin.environment.insert(begin.environment.end(), own.begin(), own.end());
  ranks_.push_back({.process = start_process(begin), .error_file = err.file});
}

bool SupervisedRanks::one_failed() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.end && is_bad(rank.end->status); });
}

void SupervisedRanks::collect() {
  for (Rank& rank : ranks_) {
    int status = 0;
    if (rank.end || ::waitpid(rank.process, &status, WNOHANG) != rank.process) continue;
    rank.end = {.status = status, .was_asked = rank.was_asked, .order = ended_++};
  }
}

void SupervisedRanks::send(int signal, bool is_ours) {
  for (Rank& rank : ranks_) {
    if (rank.end) continue;
    rank.was_asked = rank.was_asked || is_ours;
    if (::kill(-rank.process, signal) != 0) ::kill(rank.process, signal);
  }
}

void SupervisedRanks::wait(int signals, int aside, int milliseconds) {
  std::vector<pollfd> watched{{.fd = signals, .events = POLLIN, .revents = 0},
                              {.fd = aside, .events = POLLIN, .revents = 0}};
  for (const RelayStream* console : {&out_, &err_})
    watched.push_back({.fd = console->has_pending() ? console->descriptor() : -1,
                       .events = POLLOUT,
                       .revents = 0});
  for (const auto& relay : relays_)
    watched.push_back({.fd = relay && !relay->console().is_full() ? relay->descriptor() : -1,
                       .events = POLLIN,
                       .revents = 0});
  if (::poll(watched.data(), watched.size(), milliseconds) <= 0) return;
  if (watched[2].revents != 0) out_.write_some();
  if (watched[3].revents != 0) err_.write_some();
  for (size_t i = 0; i < relays_.size(); ++i)
    if (watched[4 + i].revents != 0) relays_[i]->read_some();
}

void SupervisedRanks::drain(std::chrono::milliseconds limit) {
  const double until = seconds_now() + std::chrono::duration<double>(limit).count();
  const auto is_open = [](const auto& relay) { return relay && relay->descriptor() >= 0; };
  while (seconds_now() < until && (out_.has_pending() || err_.has_pending() ||
                                   std::any_of(relays_.begin(), relays_.end(), is_open)))
    wait(-1, -1, 50);
  for (auto& relay : relays_)
    if (relay) relay->end();
  // What end() has added.
  while (seconds_now() < until && (out_.has_pending() || err_.has_pending())) wait(-1, -1, 50);
}

std::optional<size_t> SupervisedRanks::culprit() const {
  std::optional<size_t> found;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const auto& end = ranks_[i].end;
    if (!end || !is_bad(end->status) || end->was_asked) continue;
    if (!found) {
      found = i;
      continue;
    }
    const RankEnd& best = *ranks_[*found].end;
    const bool here = was_let_down(end->status), there = was_let_down(best.status);
    if (here == there ? end->order < best.order : there) found = i;
  }
  return found;
}

std::vector<std::string> SupervisedRanks::last_words(size_t local_rank) const {
  const auto& relay = relays_[2 * local_rank + 1];
  if (relay) return {relay->last_lines().begin(), relay->last_lines().end()};
  const auto& file = ranks_[local_rank].error_file;
  return file.empty() ? std::vector<std::string>{} : last_lines_of(file);
}

}  // namespace bev
