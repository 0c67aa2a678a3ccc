#include "device/thread_pool.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

namespace {

// Parallel sections follow each other within microseconds inside a step, so a short spin saves the
// cost of a sleep; an idle pool sleeps.
constexpr int kSpins = 20000;

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

void ThreadPool::work(int thread) {
  uint32_t seen = 0;
  while (true) {
    wait_while(generation_, seen);
    ++seen;
    if (stop_.load(std::memory_order_acquire)) return;
    call(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadPool::run(FunctionRef<void(int)> body) {
  body_ = &body;
  if (threads_ > 1) {
    running_.store(threads_ - 1, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  }
  call(0);
  for (int left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    wait_while(running_, left);
  }
  body_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::split(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t parts = std::clamp<int64_t>(grain > 0 ? count / grain : count, 1, threads_);
  if (parts == 1) {
    if (count > 0) body(0, count);
    return;
  }
  run([&](int thread) {
    if (thread >= parts) return;
    const int64_t begin = count * thread / parts;
    const int64_t end = count * (thread + 1) / parts;
    if (begin < end) body(begin, end);
  });
}

void ThreadPool::each(int64_t count, FunctionRef<void(int64_t, int)> body) {
  if (count == 1 || threads_ == 1) {
    for (int64_t task = 0; task < count; ++task) body(task, 0);
    return;
  }
  std::atomic<int64_t> next{0};
  run([&](int thread) {
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
