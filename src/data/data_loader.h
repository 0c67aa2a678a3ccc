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

class DataLoader {
 public:
  struct Shape {
    BatchSchedule schedule;  // samples of a step
    int64_t micro_batch = 0;
    BatchSpec fields{};
    int64_t share = 0, shares = 1;  // of every `shares` micro-batches, which one is read
  };

  // `fields`: of ModelSpec::batch. `share`: index among the data_ranks(config).
  static Shape shape_of(const Config& config, const BatchSpec& fields, int64_t share = 0);

  struct Position {
    int64_t position = 0;  // the first sample that is not behind it
    int64_t consumed = 0;  // samples handed out so far, which decide the size of a step
  };

  // Starts at `start`, and leaves out `skipped`. The samples may be shared with whoever wants to
  // describe them.
  DataLoader(std::shared_ptr<const Dataset> samples, const Shape& shape, const Position& start,
             SampleRanges skipped = {});
  DataLoader(std::shared_ptr<const Dataset> samples, const Shape& shape)
      : DataLoader(std::move(samples), shape, Position{}) {}
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // Valid until the next call. Throws what reading threw; the position then stays. Does not
  // allocate.
  std::span<const HostBatch> next();

  // Behind what was handed out so far.
  const Position& place() const { return place_; }

 private:
  struct Step {
    std::vector<HostBatch> batches;
    size_t used = 0;
    Position end{};  // behind it
  };
  void prepare(Step& step, const Position& place) const;
  void work();

  std::shared_ptr<const Dataset> samples_;
  Shape shape_;
  SampleRanges skipped_;
  Position place_;
  Step current_, ahead_;

  // The worker owns `ahead_` between a request and its completion.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false, ready_ = false, ended_ = false;
  Position wanted_place_{};
  std::exception_ptr failure_;
  std::thread worker_;
};

}  // namespace bev
