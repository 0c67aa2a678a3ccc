#include "infer/generation_service.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace bev {

struct QueuedService::Request {
  GenerationRequest wanted{};
  uint64_t group = 0;
  int64_t number = 0;  // of the batcher; 0: it waits

  std::mutex mutex{};  // held while the sink is called
  TokenSink sink{};
  BeamSink beam_sink{};  // of a search; else empty
  BeamOptions beams{};
  bool is_closed = false;  // it has ended or is cancelled: the sink is not called any more
};

class QueuedService::OwnTicket final : public Ticket {
 public:
  OwnTicket(QueuedService& service, Shared request)
      : service_(service), request_(std::move(request)) {}
  ~OwnTicket() override { service_.cancel(request_); }

 private:
  QueuedService& service_;
  Shared request_;
};

QueuedService::QueuedService(ContinuousBatcher& batcher, QueueOptions options)
    : batcher_(batcher), options_(std::move(options)), all_pages_(batcher.free_pages()) {
  counts_.pages = counts_.free_pages = all_pages_;
  thread_ = std::thread([this] { run(); });
}

QueuedService::~QueuedService() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

GenerationService::Answer QueuedService::submit(GenerationRequest request, TokenSink sink,
                                                uint64_t group) {
  std::string refusal = batcher_.why_not(request);
  const auto added = std::make_shared<Request>();
  added->wanted = std::move(request);
  added->sink = std::move(sink);
  return take(added, std::move(refusal), group);
}

GenerationService::Answer QueuedService::search(std::vector<int32_t> prompt, SourceText source,
                                                const BeamOptions& options, BeamSink sink,
                                                uint64_t group) {
  const auto added = std::make_shared<Request>();
  added->wanted.prompt = std::move(prompt);
  added->wanted.source = std::move(source);
  std::string refusal = why_not_search(added->wanted, options);
  added->beams = options;
  added->beam_sink = std::move(sink);
  return take(added, std::move(refusal), group);
}

std::string QueuedService::why_not_search(GenerationRequest like,
                                          const BeamOptions& options) const {
  if (!options_.search) return "no searches are done here";
  if (options.beams < 1 || options.beams > options_.rows)
    return format("a search has 1 to {} beams here, not {}", options_.rows, options.beams);
  if (options.tokens < 1) return "a search makes at least one token";
  like.tokens = options.tokens;
  if (std::string refusal = batcher_.why_not(like); !refusal.empty()) return refusal;
  // Each beam has its pages, and one more while it becomes another.
  const int64_t pages = options.beams * (batcher_.pages_of(like) + 1);
  if (pages > all_pages_)
    return format("the beams would take {} pages of the cache, which has {}", pages, all_pages_);
  return {};
}

GenerationService::Answer QueuedService::take(const Shared& request, std::string refusal,
                                              uint64_t group) {
  bool is_full = false;
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) {
    refusal = failure_;
  } else if (is_draining_) {
    refusal = "nothing new is taken: the server is about to end";
    is_full = true;
  } else if (refusal.empty() && waiting_ >= options_.waiting) {
    refusal = format("{} texts wait already; try again later", waiting_);
    is_full = true;
  }
  if (!refusal.empty()) {
    ++counts_.refused;
    return {.ticket = {}, .refusal = std::move(refusal), .is_full = is_full};
  }
  request->group = group;
  std::deque<Shared>& queue = groups_[group];
  if (queue.empty()) turns_.push_back(group);
  queue.push_back(request);
  ++waiting_;
  wake_.notify_all();
  return {.ticket = std::make_unique<OwnTicket>(*this, request)};
}

void QueuedService::cancel(const Shared& request) {
  {
    const std::lock_guard closing(request->mutex);
    if (std::exchange(request->is_closed, true)) return;
  }
  const std::lock_guard lock(mutex_);
  ++counts_.cancelled;
  if (request->number != 0) {
    cancelled_.push_back(request->number);
  } else if (const auto group = groups_.find(request->group); group != groups_.end()) {
    waiting_ -= static_cast<int64_t>(std::erase(group->second, request));
    if (group->second.empty()) {
      groups_.erase(group);
      std::erase(turns_, request->group);
    }
  }
  wake_.notify_all();
  settled_.notify_all();
}

ServiceCounts QueuedService::counts() const {
  const std::lock_guard lock(mutex_);
  ServiceCounts counts = counts_;
  counts.waiting = waiting_;
  counts.running = std::ssize(admitted_) + (search_ != nullptr ? 1 : 0);
  return counts;
}

std::string QueuedService::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::exception_ptr QueuedService::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool QueuedService::drain(double seconds) {
  std::unique_lock lock(mutex_);
  is_draining_ = true;
  return settled_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [&] { return has_settled(); });
}

void QueuedService::run() {
  try {
    work();
  } catch (const std::exception& error) {
    fail(std::current_exception(), error.what());
  }
}

void QueuedService::wait(std::unique_lock<std::mutex>& lock) {
  const auto has_work = [&] {
    return is_stopping_ || waiting_ > 0 || search_ != nullptr || !cancelled_.empty() || !is_idle_;
  };
  if (!options_.when_idle) return wake_.wait(lock, has_work);
  while (!wake_.wait_for(lock, options_.idle_interval, has_work)) {
    lock.unlock();
    options_.when_idle();
    lock.lock();
  }
}

void QueuedService::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wait(lock);
    if (is_stopping_) return;
    for (const int64_t number : std::exchange(cancelled_, {})) {
      batcher_.cancel(number);
      admitted_.erase(number);
    }
    admit();
    is_idle_ = batcher_.is_idle();
    double busy = 0;
    if (!is_idle_) {
      lock.unlock();
      const double began = seconds_now();
      batcher_.step();
      busy = seconds_now() - began;
      lock.lock();
    }
    settle(busy);
    if (search_ != nullptr && admitted_.empty() && is_idle_) run_search(lock);
  }
}

void QueuedService::run_search(std::unique_lock<std::mutex>& lock) {
  const Shared request = search_;
  lock.unlock();
  const double began = seconds_now();
  std::vector<Beam> beams;
  bool is_wanted = false;
  {
    const std::lock_guard looking(request->mutex);
    is_wanted = !request->is_closed;
  }
  if (is_wanted)
    beams = options_.search(request->wanted.prompt, request->wanted.source, request->beams,
                            [&] { return search_goes_on(*request); });
  {
    const std::lock_guard calling(request->mutex);
    is_wanted = is_wanted && !std::exchange(request->is_closed, true);
    if (is_wanted) request->beam_sink(beams.empty() ? nullptr : &beams);
  }
  lock.lock();
  search_ = nullptr;
  if (is_wanted) {
    ++counts_.finished;
    counts_.prompt_tokens += request->wanted.prompt_tokens();
    for (const Beam& beam : beams) counts_.generated_tokens += std::ssize(beam.ids);
  }
  ++counts_.steps;
  counts_.busy_seconds += seconds_now() - began;
  if (has_settled()) settled_.notify_all();
}

bool QueuedService::search_goes_on(Request& request) {
  {
    const std::lock_guard lock(mutex_);
    // Who watches sees that the model gets on.
    ++counts_.steps;
  }
  const std::lock_guard looking(request.mutex);
  return !request.is_closed;
}

QueuedService::Shared QueuedService::take_turn() {
  if (turns_.empty()) return nullptr;
  const uint64_t group = turns_.front();
  turns_.pop_front();
  std::deque<Shared>& queue = groups_[group];
  Shared next = std::move(queue.front());
  queue.pop_front();
  --waiting_;
  if (queue.empty()) {
    groups_.erase(group);
  } else {
    turns_.push_back(group);
  }
  return next;
}

void QueuedService::admit() {
  while (search_ == nullptr && std::ssize(admitted_) < options_.rows) {
    const Shared next = take_turn();
    if (next == nullptr) return;
    if (next->beam_sink) {
      search_ = next;
      return;
    }
    counts_.prompt_tokens += next->wanted.prompt_tokens();
    next->number = batcher_.submit(
        std::move(next->wanted), [this, next](const TokenEvent& event) { deliver(*next, event); });
    admitted_.emplace(next->number, next);
  }
}

void QueuedService::deliver(Request& request, const TokenEvent& event) {
  if (event.has_token) ++made_;
  const std::lock_guard calling(request.mutex);
  if (request.is_closed) return;
  if (event.finish != FinishReason::None) {
    request.is_closed = true;
    ended_.push_back(request.number);
  }
  request.sink(event);
}

// After a step.
void QueuedService::settle(double busy_seconds) {
  is_idle_ = batcher_.is_idle();
  for (const int64_t number : ended_) admitted_.erase(number);
  counts_.finished += std::ssize(ended_);
  ended_.clear();
  counts_.generated_tokens += std::exchange(made_, 0);
  if (busy_seconds > 0) ++counts_.steps;
  counts_.busy_seconds += busy_seconds;
  counts_.free_pages = batcher_.free_pages();
  if (has_settled()) settled_.notify_all();
}

void QueuedService::fail(const std::exception_ptr& error, const std::string& why) {
  std::vector<Shared> open;
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
    failure_ = format("the model has failed: {}", why);
    for (const auto& [number, request] : admitted_) open.push_back(request);
    for (const auto& [group, queue] : groups_) open.insert(open.end(), queue.begin(), queue.end());
    admitted_.clear();
    if (search_ != nullptr) open.push_back(std::exchange(search_, nullptr));
    groups_.clear();
    turns_.clear();
    waiting_ = 0;
  }
  for (const Shared& request : open) {
    const std::lock_guard calling(request->mutex);
    if (std::exchange(request->is_closed, true)) continue;
    if (request->beam_sink) {
      request->beam_sink(nullptr);
    } else {
      request->sink({.finish = FinishReason::Failed});
    }
  }
  settled_.notify_all();
}

}  // namespace bev
