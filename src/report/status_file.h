// status.json: what a run is doing, for whoever looks into its folder. Everything in it is written
// and read through one list of members (status_file.cpp).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/process_identity.h"

namespace bev {

enum class RunPhase : uint8_t { Starting, Training, Evaluating, Saving, Ended, Failed };

std::string_view name_of(RunPhase phase);

// The mean of one loss of the model.
struct NamedLoss {
  std::string name;
  double mean = 0;  // NaN: not finite
  bool operator==(const NamedLoss&) const = default;
};

// Times are seconds since 1970; 0 where there is none yet.
struct RunStatus {
  RunPhase phase = RunPhase::Starting;
  double phase_since = 0;  // kept by StatusWriter
  double started = 0, updated = 0;
  std::string host{};
  ProcessIdentity process{};
  std::string program{};  // "bevatron 0.1.0"
  std::string device{};   // "cuda, bf16"
  std::string layout{};   // "4 ranks: tensor 2, pipeline 2"
  int64_t ranks = 1;

  int64_t iteration = 0, iterations = 0;            // the last that is done, and of all
  double iteration_time = 0;                        // when that was; kept by StatusWriter
  int64_t samples = 0;                              // consumed
  std::optional<double> loss{}, valid_loss{};       // weighted sums of the means
  std::vector<NamedLoss> losses{}, valid_losses{};  // the means
  std::optional<double> grad_norm{}, learning_rate{};
  double rate_factor = 1;  // of the scheduled learning rate (control/lr)
  std::optional<double> tokens_per_second{}, seconds_per_iteration{}, seconds_left{};
  double device_bytes = 0;
  double host_bytes = 0;  // kept by StatusWriter

  std::string checkpoint{};  // the path of the last that was saved
  int64_t checkpoint_iteration = 0;
  double checkpoint_time = 0;
  std::string save_failure{};  // why the last save failed; empty: it did not

  int64_t skipped = 0, spikes = 0, rollbacks = 0;
  std::string last_event{};  // of guards and of the control folder, in words
  double last_event_time = 0;
  std::string slowest{};  // "3 (+12.3 %)"

  std::string ending{};   // "complete", "stopped by SIGTERM"; of Failed: why
  int64_t exit_code = 0;  // of Ended and Failed

  bool is_over() const { return phase == RunPhase::Ended || phase == RunPhase::Failed; }
  bool operator==(const RunStatus&) const = default;
};

// A training that did all it should.
inline constexpr std::string_view kComplete = "complete";

// JSON, with a newline at the end. Numbers that are not finite become null.
std::string to_text(const RunStatus& status);

// Members that are missing keep their defaults and unknown ones mean nothing: versions differ. Data
// error where a member is not what it should be, which names `source`. Texts come without control
// characters and of bounded length.
RunStatus parse_status(std::string_view text, std::string_view source);

// None: there is no such file. Data error: it is damaged, or no regular file.
std::optional<RunStatus> read_status(const std::filesystem::path& path);

// The text for a terminal: control characters become blanks, what is behind `most` bytes is cut.
std::string harmless(std::string_view text, size_t most);

// Keeps status.json up to date while a run goes on.

// In seconds.
struct StatusTimes {
  double period = 1;          // between writes of ordinary changes, at least
  double least_pause = 0.05;  // between any two
  double heartbeat = 5;       // at most
};

// A thread of its own writes the file: about once a second where something changed, at once after
// another phase, and every few seconds in any case, so that readers see that the process lives. A
// disk that fails ends nothing: the reason is kept, and the next attempt may succeed.
class StatusWriter {
 public:
  // `first`: host, process and times of the start are filled in where they are missing.
  StatusWriter(std::filesystem::path file, RunStatus first, StatusTimes times = {});
  // Writes the last state. A run that has said nothing about its end by then has failed.
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

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
