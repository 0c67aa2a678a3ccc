// Keeps status.json up to date while a run goes on.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/function_ref.h"
#include "report/run_status.h"

namespace bev {

// In seconds.
struct StatusTimes {
  double period = 1;          // between writes of ordinary changes, at least
  double least_pause = 0.05;  // between any two
  double heartbeat = 5;       // at most
};

// A thread of its own writes the file: about once a second where something changed, at once after
// another phase, and every few seconds in any case, so that readers see that the process lives. A
// disk that fails ends nothing: the reason is kept, and the next attempt may succeed.
class StatusFile {
 public:
  // `first`: host, process and times of the start are filled in where they are missing.
  StatusFile(std::filesystem::path file, RunStatus first, StatusTimes times = {});
  // Writes the last state. A run that has said nothing about its end by then has failed.
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  // From any thread, as often as it likes: touches no file and allocates nothing. Since when the
  // phase and the iteration are what they are is noted here. REQUIRES: `edit` calls nothing of
  // this.
  void change(FunctionRef<void(RunStatus&)> edit);
  RunStatus current() const;

  // Why the last attempt to write failed; none where it succeeded.
  std::optional<std::string> failure() const;

 private:
  void keep_writing();
  void write(std::unique_lock<std::mutex>& lock);

  std::filesystem::path file_, draft_;
  StatusTimes times_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  RunStatus status_;
  bool has_changed_ = true, is_urgent_ = true, is_ending_ = false;
  std::optional<std::string> failure_;
  std::thread writer_;  // last: it uses all of the above
};

}  // namespace bev
