#include "device/thread_pool.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

namespace {

// Parallel sections follow each other within microseconds inside a step, so a short spin saves the
// cost of a sleep; an idle pool sleeps.
constexpr int kSpins = 20000;

constexpr uint64_t kClosed = uint64_t{1} << 31, kEntered = kClosed - 1;

void pause_core() { __builtin_ia32_pause(); }

template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_core();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  BEV_CHECK(threads >= 1, Internal, "a thread pool of {} threads", threads);
  workers_.reserve(static_cast<size_t>(threads - 1));
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::call(int thread) {
  try {
    (*body_)(thread);
  } catch (...) {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::open(const FunctionRef<void(int)>& body) {
  body_ = &body;
  finished_.store(0, std::memory_order_relaxed);
  const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  gate_.store(uint64_t{generation} << 32, std::memory_order_release);
  generation_.store(generation, std::memory_order_release);
  generation_.notify_all();
}

int ThreadPool::close() {
  return static_cast<int>(gate_.fetch_or(kClosed, std::memory_order_acq_rel) & kEntered);
}

bool ThreadPool::enter(uint32_t& seen) {
  uint64_t gate = gate_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(gate >> 32) != seen) {
    if ((gate & kClosed) != 0) {
      seen = static_cast<uint32_t>(gate >> 32);
      return false;
    }
    if (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) continue;
    seen = static_cast<uint32_t>(gate >> 32);
    return true;
  }
  return false;
}

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  while (true) {
    wait_while(generation_, seen);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!enter(seen)) continue;
    call(thread);
    finished_.fetch_add(1, std::memory_order_acq_rel);
    finished_.notify_one();
  }
}

void ThreadPool::finish(int entered) {
  for (int done = finished_.load(std::memory_order_acquire); done != entered;
       done = finished_.load(std::memory_order_acquire)) {
    wait_while(finished_, done);
  }
  body_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::run(FunctionRef<void(int)> body) {
  open(body);
  call(0);
  finish(threads_ - 1);
}

void ThreadPool::share(FunctionRef<void(int)> body) {
  open(body);
  call(0);
  finish(close());
}

void ThreadPool::split(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t parts = std::clamp<int64_t>(grain > 0 ? count / grain : count, 1, threads_);
  if (parts == 1) {
    if (count > 0) body(0, count);
    return;
  }
  each(parts, [&](int64_t part, int) {
    const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
    if (begin < end) body(begin, end);
  });
}

void ThreadPool::each(int64_t count, FunctionRef<void(int64_t, int)> body) {
  if (count == 1 || threads_ == 1) {
    for (int64_t task = 0; task < count; ++task) body(task, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  share([&](int thread) {
    for (int64_t task = next.fetch_add(1); task < count; task = next.fetch_add(1)) {
      body(task, thread);
    }
  });
}

void ThreadPool::barrier() {
  const uint32_t generation = barrier_generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    arrived_.store(0, std::memory_order_relaxed);
    barrier_generation_.fetch_add(1, std::memory_order_release);
    barrier_generation_.notify_all();
    return;
  }
  wait_while(barrier_generation_, generation);
}

}  // namespace bev
