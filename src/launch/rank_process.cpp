#include "launch/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace bev {

namespace {

// For execve, which does not write to them.
std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

// What happens between fork and exec: only what is safe there.
[[noreturn]] void become(const ProcessStart& start, char* const* arguments, char* const* variables,
                         pid_t parent, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before it could be named.
  if (::getppid() != parent) ::_exit(127);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP})
    ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &start.signals, nullptr);
  // The descriptors of the two streams may be each other's numbers.
  const int err = start.err == STDOUT_FILENO ? ::fcntl(start.err, F_DUPFD_CLOEXEC, 3) : start.err;
  const int nothing = ::open("/dev/null", O_RDONLY);
  const bool is_ready = nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 &&
                        ::dup2(start.out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0;
  if (nothing > STDERR_FILENO) ::close(nothing);
  if (is_ready) ::execve(arguments[0], arguments, variables);
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

// What the new process writes when it could not become the program; 0 when it did.
int error_of_start(int report) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(report, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

}  // namespace

int await_end(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

pid_t start_process(const ProcessStart& start) {
  const std::vector<char*> arguments = pointers(start.command),
                           variables = pointers(start.environment);
  std::array<int, 2> report{};
  BEV_CHECK(::pipe2(report.data(), O_CLOEXEC) == 0, Device, "cannot start a process: {}",
            std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process == 0) become(start, arguments.data(), variables.data(), parent, report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  const int error = process < 0 ? fork_error : error_of_start(report[0]);
  ::close(report[0]);
  BEV_CHECK(process >= 0, Device, "cannot start a process: {}", std::strerror(error));
  // Both sides do it, so that it is done whoever comes first.
  ::setpgid(process, process);
  if (error == 0) return process;
  await_end(process);
  throw Error(ErrorKind::Usage,
              format("cannot run {}: {}; legal is a verb of bevatron or the path of a program",
                     start.command[0], std::strerror(error)));
}

}  // namespace bev
