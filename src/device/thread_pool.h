// The threads of a host device. Owned by the device, so two devices in one process do not share
// state.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace bev {

class ThreadPool {
 public:
  // REQUIRES: threads >= 1. The caller of run() is thread 0.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(thread) once on every thread and returns when all have finished. The first exception
  // is thrown again here. Calls do not nest.
  void run(FunctionRef<void(int thread)> body);

  // The same, but only on this thread and on those that come while it is at work: on a busy machine
  // nobody waits for a thread that has not been given a core. The bodies must share out the work
  // themselves, so that whoever comes does what is left.
  void share(FunctionRef<void(int thread)> body);

  // Cuts [0, count) into contiguous runs of at least `grain` and calls body(begin, end) on them.
  // The cut depends on the number of threads: a body must compute each index on its own.
  void split(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> body);

  // Calls body(task, thread) for every task in [0, count); a free thread takes the next task.
  void each(int64_t count, FunctionRef<void(int64_t task, int thread)> body);

  // Inside run(): waits until all threads have called it.
  void barrier();

 private:
  // A job that threads may enter; `entered` counts those that did.
  void open(const FunctionRef<void(int)>& body);
  int close();
  void finish(int entered);
  bool enter(uint32_t& seen);
  void work(int thread);
  void call(int thread);

  const int threads_;
  std::vector<std::thread> workers_;
  const FunctionRef<void(int)>* body_ = nullptr;
  std::atomic<uint32_t> generation_{0};  // of the job; grows by one per job
  // Generation << 32 | closed << 31 | workers that have entered: one word, so that a worker enters
  // exactly the job it sees, and never one whose owner has stopped waiting.
  std::atomic<uint64_t> gate_{uint64_t{1} << 31};
  std::atomic<int> finished_{0};  // workers that have left the current job
  std::atomic<bool> stop_{false};
  std::atomic<int> arrived_{0};
  std::atomic<uint32_t> barrier_generation_{0};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
};

}  // namespace bev
