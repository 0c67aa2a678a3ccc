#include "launch/supervisor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "launch/restart_policy.h"

namespace bev {

int supervise(const LaunchJob& job, const LaunchNote& note) {
  BEV_CHECK(job.outputs.size() == static_cast<size_t>(job.local_size), Internal,
            "{} outputs for {} ranks", job.outputs.size(), job.local_size);
  SignalQueue signals;
  RestartPolicy policy(job);
  for (int number = 0;; ++number) {
    const AttemptEnd end = Attempt(job, number, signals, note).run();
    if (end.code == 0 || end.asked_by != 0) {
      if (end.code != 0) note(format("ended by SIG{}", ::sigabbrev_np(end.asked_by)));
      return end.code;
    }
    const RestartPolicy::Verdict verdict = policy.after(end);
    note(end.report + verdict.words);
    if (!verdict.again) return end.code;
    if (const int signal = pause(signals, verdict.wait)) return 128 + signal;
  }
}

int free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BEV_CHECK(descriptor >= 0, Comm, "cannot make a socket: {}", std::strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound =
      ::bind(descriptor, generic, size) == 0 && ::getsockname(descriptor, generic, &size) == 0;
  const int error = errno;
  ::close(descriptor);
  BEV_CHECK(is_bound, Comm, "this machine gives no free port: {}", std::strerror(error));
  return ntohs(address.sin_port);
}

}  // namespace bev
