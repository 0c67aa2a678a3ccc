#include "golden_runner/own_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/check.h"
#include "base/file.h"

namespace fs = std::filesystem;

namespace bev::golden {

int run_program(const std::vector<std::string>& args, const fs::path& folder,
                std::string_view until) {
  const std::string program = fs::read_symlink("/proc/self/exe").parent_path() / "bevatron";
  std::vector<char*> pointers{const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) pointers.push_back(const_cast<char*>(arg.c_str()));
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  BEV_CHECK(child >= 0, Internal, "cannot start {}", program);
  if (child == 0) {
    const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (log < 0 || ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(program.c_str(), pointers.data());
    ::_exit(127);
  }
  int status = 0;
  while (!until.empty() && ::waitpid(child, &status, WNOHANG) == 0) {
    ::poll(nullptr, 0, 20);
    std::error_code missing;
    if (!fs::exists(folder / "log", missing) ||
        read_text(folder / "log").find(until) == std::string::npos)
      continue;
    ::kill(child, SIGTERM);
    until = {};
  }
  // Ended already: then the status is there.
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

fs::path vocabulary_folder(const fs::path& dir) {
  for (fs::path parent = dir; parent != parent.parent_path(); parent = parent.parent_path()) {
    if (fs::exists(parent / "gpt2" / "vocab.json")) return parent;
    if (fs::exists(parent / "data" / "gpt2" / "vocab.json")) return parent / "data";
  }
  return {};
}

}  // namespace bev::golden
