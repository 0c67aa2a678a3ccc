#include "report/status_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json_fields.h"
#include "base/process.h"
#include "net/address.h"
#include "ops/update_rule.h"

namespace bev {

namespace {

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr size_t kMostText = 4096;
constexpr std::array<std::string_view, 6> kPhases{"starting", "training", "evaluating",
                                                  "saving",   "ended",    "failed"};

// The one list of what is in the file.
template <class Status, class Visit>
void walk_fields(Status& s, Visit&& visit) {
  visit("phase", s.phase);
  visit("phase_since", s.phase_since);
  visit("started", s.started);
  visit("updated", s.updated);
  visit("host", s.host);
  visit("pid", s.process.pid);
  visit("process_start", s.process.start);
  visit("machine", s.process.machine);
  visit("program", s.program);
  visit("device", s.device);
  visit("layout", s.layout);
  visit("ranks", s.ranks);
  visit("iteration", s.iteration);
  visit("iterations", s.iterations);
  visit("iteration_time", s.iteration_time);
  visit("samples", s.samples);
  visit("loss", s.loss);
  visit("losses", s.losses);
  visit("valid_loss", s.valid_loss);
  visit("valid_losses", s.valid_losses);
  visit("grad_norm", s.grad_norm);
  visit("learning_rate", s.learning_rate);
  visit("rate_factor", s.rate_factor);
  visit("tokens_per_second", s.tokens_per_second);
  visit("seconds_per_iteration", s.seconds_per_iteration);
  visit("seconds_left", s.seconds_left);
  visit("device_bytes", s.device_bytes);
  visit("host_bytes", s.host_bytes);
  visit("checkpoint", s.checkpoint);
  visit("checkpoint_iteration", s.checkpoint_iteration);
  visit("checkpoint_time", s.checkpoint_time);
  visit("save_failure", s.save_failure);
  visit("skipped", s.skipped);
  visit("spikes", s.spikes);
  visit("rollbacks", s.rollbacks);
  visit("last_event", s.last_event);
  visit("last_event_time", s.last_event_time);
  visit("slowest", s.slowest);
  visit("ending", s.ending);
  visit("exit_code", s.exit_code);
}

// JSON has no word for what is not finite.
Json finite_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

struct Writer {
  Json& json;

  void operator()(const char* name, RunPhase value) const { json[name] = name_of(value); }
  void operator()(const char* name, int64_t value) const { json[name] = value; }
  void operator()(const char* name, double value) const { json[name] = finite_number(value); }
  void operator()(const char* name, const std::optional<double>& value) const {
    json[name] = value ? finite_number(*value) : Json(nullptr);
  }
  void operator()(const char* name, const std::string& value) const { json[name] = value; }
  void operator()(const char* name, const std::vector<NamedLoss>& losses) const {
    Json& object = json[name] = Json::object();
    for (const NamedLoss& loss : losses) object[loss.name] = finite_number(loss.mean);
  }
};

struct Reader {
  const JsonFields& fields;

  void operator()(const char* name, RunPhase& value) const {
    const Json* found = fields.find(name);
    if (found == nullptr) return;
    for (size_t i = 0; i < kPhases.size(); ++i) {
      if (*found != kPhases[i]) continue;
      value = static_cast<RunPhase>(i);
      return;
    }
    fields.fail(name, "one of the phases of this version");
  }
  void operator()(const char* name, int64_t& value) const {
    if (fields.has(name)) value = fields.count(name);
  }
  void operator()(const char* name, double& value) const {
    value = fields.number_or(name, value);
    // Times and sizes.
    constexpr double kMost = 1e18;
    if (value < 0 || value > kMost) fields.fail(name, format("a number from 0 to {:g}", kMost));
  }
  void operator()(const char* name, std::optional<double>& value) const {
    if (fields.has(name)) value = fields.number(name);
  }
  void operator()(const char* name, std::string& value) const {
    if (fields.has(name)) value = harmless(fields.text(name), kMostText);
  }
  void operator()(const char* name, std::vector<NamedLoss>& losses) const {
    if (!fields.has(name)) return;
    const Json& object = fields.map(name);
    if (object.size() > kMostLosses) fields.fail(name, format("at most {} losses", kMostLosses));
    for (const auto& [loss, mean] : object.items()) {
      if (!mean.is_number() && !mean.is_null()) fields.fail(name, "an object of numbers");
      losses.push_back({harmless(loss, kMostText), mean.is_null()
                                                       ? std::numeric_limits<double>::quiet_NaN()
                                                       : mean.get<double>()});
    }
  }
};

}  // namespace

std::string_view name_of(RunPhase phase) { return kPhases[static_cast<size_t>(phase)]; }

std::string harmless(std::string_view text, size_t most) {
  // Cut before a character, not within one.
  if (text.size() > most) {
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
    text = text.substr(0, most);
  }
  std::string clean(text);
  for (size_t i = 0; i < clean.size(); ++i) {
    const auto byte = static_cast<unsigned char>(clean[i]);
    if (byte < 0x20 || byte == 0x7F) clean[i] = ' ';
    // The control characters U+0080 to U+009F: terminals obey them too.
    if (byte != 0xC2 || i + 1 == clean.size()) continue;
    if (static_cast<unsigned char>(clean[i + 1]) < 0xA0) clean[i] = clean[i + 1] = ' ';
  }
  return clean;
}

std::string to_text(const RunStatus& status) {
  Json json = Json::object();
  walk_fields(status, Writer{json});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunStatus parse_status(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source, {.bytes = kMostBytes, .depth = 8});
  const JsonFields fields(json, std::string(source));
  RunStatus status;
  walk_fields(status, Reader{fields});
  return status;
}

std::optional<RunStatus> read_status(const std::filesystem::path& path) {
  const std::optional<UntrustedFile> found = find_file(AT_FDCWD, path.string());
  if (!found) return std::nullopt;
  BEV_CHECK(found->other.empty(), Data, "{} is {}, not a regular file", path.string(),
            found->other);
  std::optional<std::string> text;
  // On a network file system, one that is being replaced may be gone for a moment.
  for (int attempt = 0; attempt < 3 && !text; ++attempt)
    text = read_found(AT_FDCWD, path.string(), kMostBytes + 1);
  BEV_CHECK(text, Data, "{} cannot be read", path.string());
  return parse_status(*text, path.string());
}

namespace {

// Appears whole or not at all. Nothing is flushed to the disk: a status that a power cut loses is
// old anyway, and flushing would wait for the checkpoint that is being written. Returns why it
// failed, or nothing.
std::optional<std::string> replace_file(const std::filesystem::path& file,
                                        const std::filesystem::path& draft,
                                        const std::string& text) {
  const auto failed = [&] {
    std::optional<std::string> why =
        format("cannot write {}: {}", file.string(), std::strerror(errno));
    ::unlink(draft.c_str());
    return why;
  };
  const int descriptor = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return failed();
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = ::write(descriptor, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int why = errno;
      ::close(descriptor);
      errno = why;
      return failed();
    }
    done += static_cast<size_t>(put);
  }
  if (::close(descriptor) != 0 || ::rename(draft.c_str(), file.c_str()) != 0) return failed();
  return std::nullopt;
}

RunStatus completed(RunStatus status) {
  const double now = unix_seconds();
  if (status.host.empty()) status.host = host_name();
  if (status.process.pid == 0) status.process = own_process();
  if (status.started == 0) status.started = now;
  if (status.phase_since == 0) status.phase_since = now;
  if (status.iteration_time == 0) status.iteration_time = now;
  return status;
}

}  // namespace

StatusWriter::StatusWriter(std::filesystem::path file, RunStatus first, StatusTimes times)
    : file_(std::move(file)),
      draft_(file_.string() + format(".partial.{}", ::getpid())),
      times_(times),
      status_(completed(std::move(first))),
      writer_([this] { keep_writing(); }) {}

StatusWriter::~StatusWriter() {
  change([](RunStatus& status) {
    if (status.is_over()) return;
    status.phase = RunPhase::Failed;
    status.ending = "an error that its output names";
  });
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

void StatusWriter::change(FunctionRef<void(RunStatus&)> edit) {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    const RunPhase phase = status_.phase;
    const int64_t iteration = status_.iteration;
    edit(status_);
    has_changed_ = true;
    if (status_.iteration != iteration) status_.iteration_time = unix_seconds();
    if (status_.phase != phase) {
      status_.phase_since = unix_seconds();
      wakes = !is_urgent_;
      is_urgent_ = true;
    }
  }
  if (wakes) wake_.notify_one();
}

RunStatus StatusWriter::current() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

std::optional<std::string> StatusWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void StatusWriter::write(std::unique_lock<std::mutex>& lock) {
  has_changed_ = is_urgent_ = false;
  status_.updated = unix_seconds();
  RunStatus status = status_;
  lock.unlock();
  status.host_bytes = resident_bytes();
  std::optional<std::string> failure = replace_file(file_, draft_, to_text(status));
  lock.lock();
  failure_ = std::move(failure);
}

void StatusWriter::keep_writing() {
  using Seconds = std::chrono::duration<double>;
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    write(lock);
    const double written = seconds_now();
    wake_.wait_for(lock, Seconds(times_.least_pause), [&] { return is_ending_; });
    while (!is_ending_ && !is_urgent_) {
      const double passed = seconds_now() - written;
      if (passed >= times_.heartbeat || (has_changed_ && passed >= times_.period)) break;
      wake_.wait_for(lock, Seconds(std::min(times_.period, times_.heartbeat)),
                     [&] { return is_ending_ || is_urgent_; });
    }
  }
  write(lock);
}

}  // namespace bev
