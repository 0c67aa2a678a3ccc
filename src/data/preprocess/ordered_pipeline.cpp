#include "data/preprocess/ordered_pipeline.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace bev {

namespace {

// Items are numbered from 0; item i is in slot i mod slots. Of the counts below, consumed_ <=
// claimed_ <= produced_ <= consumed_ + slots.
class Pipeline {
 public:
  Pipeline(size_t slots, const PipelineStages& stages) : stages_(stages), items_(slots) {}

  void run(size_t workers) {
    std::vector<std::thread> threads;
    try {
      threads.emplace_back([this] { produce(); });
      for (size_t i = 0; i < workers; ++i) threads.emplace_back([this, i] { work(i); });
      consume();
    } catch (...) {
      end(threads);
      throw;
    }
    end(threads);
  }

 private:
  struct Item {
    bool done = false;
    std::exception_ptr failure{};
  };

  Item& item(size_t number) { return items_[number % items_.size()]; }

  void end(std::vector<std::thread>& threads) {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void produce() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || produced_ - consumed_ < items_.size(); });
      if (stopped_) return;
      Item& next = item(produced_);
      next = {};
      lock.unlock();
      bool more = false;
      try {
        more = stages_.produce(produced_ % items_.size());
      } catch (...) {
        // The failure takes the place of the item that did not come.
        next.failure = std::current_exception();
      }
      lock.lock();
      if (next.failure) next.done = true;
      if (more || next.failure) ++produced_;
      if (next.failure) claimed_limit_ = produced_ - 1;
      if (!more) ended_ = true;
      changed_.notify_all();
      if (ended_) return;
    }
  }

  void work(size_t worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto last = [&] { return claimed_limit_.value_or(produced_); };
      changed_.wait(lock, [&] { return stopped_ || claimed_ < last() || ended_; });
      if (stopped_ || claimed_ >= last()) return;
      const size_t mine = claimed_++;
      lock.unlock();
      std::exception_ptr failure;
      try {
        stages_.work(worker, mine % items_.size());
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      item(mine).failure = failure;
      item(mine).done = true;
      changed_.notify_all();
    }
  }

  void consume() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return consumed_ < produced_ ? item(consumed_).done : ended_; });
      if (consumed_ == produced_) return;
      const Item& next = item(consumed_);
      if (next.failure) std::rethrow_exception(next.failure);
      lock.unlock();
      const bool more = stages_.consume(consumed_ % items_.size());
      lock.lock();
      ++consumed_;
      changed_.notify_all();
      if (!more) return;
    }
  }

  PipelineStages stages_;
  std::vector<Item> items_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t produced_ = 0, claimed_ = 0, consumed_ = 0;
  std::optional<size_t> claimed_limit_;  // the item that failed to come is not worked on
  bool ended_ = false, stopped_ = false;
};

}  // namespace

void run_ordered(size_t workers, size_t slots, const PipelineStages& stages) {
  Pipeline(slots, stages).run(workers);
}

}  // namespace bev
