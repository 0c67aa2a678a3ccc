#include "data/data_loader.h"

#include "base/integer.h"

namespace bev {

DataLoader::Shape DataLoader::shape_of(const Config& config, const BatchSpec& fields,
                                       int64_t share) {
  const BatchShape batch = resolve_batch(config);
  return {.schedule = resolve_batch_schedule(config),
          .micro_batch = batch.micro_batch,
          .fields = fields,
          .share = share,
          .shares = data_ranks(config)};
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> samples, const Shape& shape,
                       const Position& start, SampleRanges skipped)
    : samples_(std::move(samples)), shape_(shape), skipped_(std::move(skipped)), place_(start) {
  const auto most =
      static_cast<size_t>(div_exact(shape_.schedule.largest(), shape_.micro_batch * shape_.shares));
  for (Step* step : {&current_, &ahead_}) {
    step->batches.resize(most);
    for (HostBatch& batch : step->batches) batch.resize(shape_.micro_batch, shape_.fields);
  }
  wanted_ = true;
  wanted_place_ = start;
  worker_ = std::thread([this] { work(); });
}

DataLoader::~DataLoader() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void DataLoader::prepare(Step& step, const Position& place) const {
  const int64_t samples = shape_.schedule.at(place.consumed);
  step.used = static_cast<size_t>(div_exact(samples, shape_.micro_batch * shape_.shares));
  step.end = {.position = skipped_.outside(place.position, samples - 1) + 1,
              .consumed = place.consumed + samples};
  for (size_t micro = 0; micro < step.used; ++micro) {
    const int64_t number = static_cast<int64_t>(micro) * shape_.shares + shape_.share;
    for (int64_t at = 0; at < shape_.micro_batch; ++at)
      samples_->read(skipped_.outside(place.position, number * shape_.micro_batch + at),
                     step.batches[micro], at);
  }
}

void DataLoader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return wanted_ || ended_; });
    if (ended_) return;
    wanted_ = false;
    const Position place = wanted_place_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      prepare(ahead_, place);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    ready_ = true;
    changed_.notify_all();
  }
}

std::span<const HostBatch> DataLoader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_; });
  if (failure_) std::rethrow_exception(failure_);
  std::swap(current_, ahead_);
  place_ = current_.end;
  ready_ = false;
  wanted_ = true;
  wanted_place_ = place_;
  changed_.notify_all();
  return std::span<const HostBatch>(current_.batches).first(current_.used);
}

}  // namespace bev
