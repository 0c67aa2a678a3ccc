#include "infer/encoder_service.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace bev {

struct EncoderService::Request {
  EncoderRequest wanted{};
  int64_t tokens = 0;
  std::mutex mutex{};  // held while the sink is called
  Sink sink{};
  bool is_closed = false;  // answered or cancelled

  int64_t texts() const { return std::ssize(wanted.inputs); }

  // Calls the sink unless the request is closed; returns whether it did.
  bool answer(const EncoderResult* result) {
    const std::lock_guard calling(mutex);
    if (std::exchange(is_closed, true)) return false;
    sink(result);
    return true;
  }
};

EncoderService::EncoderService(LoadedModel& model, int64_t waiting)
    : pass_(model), most_waiting_(waiting) {
  thread_ = std::thread([this] { run(); });
}

EncoderService::~EncoderService() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

EncoderService::Answer EncoderService::submit(EncoderRequest request, Sink sink) {
  const auto added = std::make_shared<Request>();
  for (const EncoderInput& input : request.inputs) added->tokens += std::ssize(input.ids);
  added->wanted = std::move(request);
  added->sink = std::move(sink);
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) {
    ++counts_.refused;
    return {.ticket = {}, .refusal = failure_};
  }
  if (counts_.waiting > 0 && counts_.waiting + added->texts() > most_waiting_) {
    ++counts_.refused;
    return {.ticket = {},
            .refusal = format("{} sequences wait already; try again later", counts_.waiting),
            .is_full = true};
  }
  counts_.waiting += added->texts();
  queue_.push_back(added);
  wake_.notify_all();
  return {.ticket = std::make_unique<Ticket>(*this, added)};
}

void EncoderService::cancel(const Shared& request) {
  {
    const std::lock_guard closing(request->mutex);
    if (std::exchange(request->is_closed, true)) return;
  }
  const std::lock_guard lock(mutex_);
  ++counts_.cancelled;
  if (std::erase(queue_, request) > 0) counts_.waiting -= request->texts();
}

ServiceCounts EncoderService::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::string EncoderService::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::exception_ptr EncoderService::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void EncoderService::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
    if (is_stopping_) return;
    const Shared request = std::move(queue_.front());
    queue_.pop_front();
    counts_.waiting -= request->texts();
    counts_.running = request->texts();
    lock.unlock();
    try {
      compute(*request);
    } catch (const std::exception& error) {
      (void)request->answer(nullptr);
      fail(std::current_exception(), error.what());
      return;
    }
    lock.lock();
    counts_.running = 0;
  }
}

void EncoderService::compute(Request& request) {
  const double began = seconds_now();
  const EncoderRequest& wanted = request.wanted;
  const auto on_done = [&](int64_t) {
    const std::lock_guard lock(mutex_);
    ++counts_.steps;
  };
  EncoderResult result;
  if (wanted.pooling) {
    result.embeddings = embed_texts(pass_, wanted.inputs, {.pooling = *wanted.pooling}, on_done);
  } else {
    result.filled = fill_masks(pass_, wanted.inputs, wanted.top, on_done);
  }
  const bool is_answered = request.answer(&result);
  const std::lock_guard lock(mutex_);
  if (is_answered) counts_.finished += request.texts();
  counts_.prompt_tokens += request.tokens;
  counts_.busy_seconds += seconds_now() - began;
}

void EncoderService::fail(const std::exception_ptr& error, const std::string& why) {
  std::deque<Shared> open;
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
    failure_ = format("the model has failed: {}", why);
    open.swap(queue_);
    counts_.waiting = counts_.running = 0;
  }
  for (const Shared& request : open) (void)request->answer(nullptr);
}

}  // namespace bev
