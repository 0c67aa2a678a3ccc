// The micro-batches of one step after the other, prepared while the step before them runs. Its
// position is one integer.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "config/resolve.h"
#include "data/batch.h"

namespace bev {

class Loader {
 public:
  struct Shape {
    BatchSchedule schedule;  // samples of a step
    int64_t micro_batch = 0, length = 0;
    bool packed = false;            // batches carry document borders
    int64_t share = 0, shares = 1;  // of every `shares` micro-batches, which one is read
  };

  // `share`: of the data_ranks(config) that share the batch.
  static Shape shape_of(const Config& config, int64_t share = 0);

  // Starts with sample `position`. The samples may be shared with whoever wants to describe them.
  Loader(std::shared_ptr<const Samples> samples, const Shape& shape, int64_t position = 0);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Valid until the next call. Throws what reading threw; the position then stays. Does not
  // allocate.
  std::span<const HostBatch> next();

  // Samples handed out so far, counted from the start of the training.
  int64_t position() const { return position_; }

 private:
  struct Step {
    std::vector<HostBatch> batches;
    size_t used = 0;
    int64_t samples = 0;
  };
  void prepare(Step& step, int64_t position) const;
  void work();

  std::shared_ptr<const Samples> samples_;
  Shape shape_;
  int64_t position_;
  Step current_, ahead_;

  // The worker owns `ahead_` between a wish and its fulfilment.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false, ready_ = false, ended_ = false;
  int64_t wanted_position_ = 0;
  std::exception_ptr failure_;
  std::thread worker_;
};

}  // namespace bev
