// One process of a job, as its supervisor starts it.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace bev {

struct ProcessStart {
  std::vector<std::string> command;      // the path of the program first
  std::vector<std::string> environment;  // NAME=VALUE, all of it
  int out = 1, err = 2;                  // what becomes its stdout and stderr
  sigset_t signals{};                    // that it blocks
};

// Starts a program in a process group of its own, so that a key of the terminal reaches it only
// through its supervisor, with /dev/null as stdin. The kernel kills it when the calling thread
// ends. Returns when the program runs; where it cannot, a Usage error says why.
pid_t start_process(const ProcessStart& start);

// Waits until a child has ended; its status, as waitpid(2) gives it.
int await_end(pid_t process);

}  // namespace bev
