// The micro-batches of one step after the other, prepared while the step before them runs.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "config/resolve.h"
#include "config/sample_ranges.h"
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

  struct Place {
    int64_t position = 0;  // the first sample that is not behind it
    int64_t consumed = 0;  // samples handed out so far, which decide the size of a step
  };

  // Starts at `start`, and leaves out `skipped`. The samples may be shared with whoever wants to
  // describe them.
  Loader(std::shared_ptr<const Samples> samples, const Shape& shape, const Place& start,
         SampleRanges skipped = {});
  Loader(std::shared_ptr<const Samples> samples, const Shape& shape)
      : Loader(std::move(samples), shape, Place{}) {}
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Valid until the next call. Throws what reading threw; the position then stays. Does not
  // allocate.
  std::span<const HostBatch> next();

  // Behind what was handed out so far.
  const Place& place() const { return place_; }

 private:
  struct Step {
    std::vector<HostBatch> batches;
    size_t used = 0;
    Place end{};  // behind it
  };
  void prepare(Step& step, const Place& place) const;
  void work();

  std::shared_ptr<const Samples> samples_;
  Shape shape_;
  SampleRanges skipped_;
  Place place_;
  Step current_, ahead_;

  // The worker owns `ahead_` between a wish and its fulfilment.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false, ready_ = false, ended_ = false;
  Place wanted_place_{};
  std::exception_ptr failure_;
  std::thread worker_;
};

}  // namespace bev
