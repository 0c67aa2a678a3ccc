#include "data/megatron/megatron_samplers.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/check.h"
#include "base/integer.h"

namespace bev {

std::vector<std::vector<int64_t>> single_batches(const SamplerShape& shape, int64_t consumed,
                                                 int64_t rank, bool drop_last) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t begin = consumed; begin < shape.total; begin += shape.step()) {
    const int64_t end = std::min(shape.total, begin + shape.step());
    if (end - begin < shape.step() && drop_last) break;
    std::vector<int64_t> batch;
    const int64_t first = begin + rank * shape.micro_batch;
    for (int64_t i = first; i < std::min(end, first + shape.micro_batch); ++i) batch.push_back(i);
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<int64_t> full_validation(const SamplerShape& shape, int64_t rank) {
  std::vector<int64_t> samples;
  for (int64_t i = rank; i < shape.total; i += shape.ranks) samples.push_back(i);
  return samples;
}

void torch_permutation(uint32_t seed, std::vector<int64_t>& permutation) {
  std::mt19937 engine(seed);
  std::iota(permutation.begin(), permutation.end(), 0);
  const size_t count = permutation.size();
  for (size_t i = 0; i + 1 < count; ++i)
    std::swap(permutation[i], permutation[i + engine() % (count - i)]);
}

CyclicOrder::CyclicOrder(const SamplerShape& shape, bool sharded)
    : shape_(shape), sharded_(sharded) {
  BEV_CHECK(shape.total >= shape.step() && shape.total < kMostShuffled, Internal,
            "a cyclic order of {} samples", shape.total);
  // Without shards all whole micro-batches are shuffled, even those that not all ranks get.
  const int64_t shuffled = sharded ? shape.total / shape.step() * shape.micro_batch
                                   : shape.total / shape.micro_batch * shape.micro_batch;
  permutation_.resize(static_cast<size_t>(shuffled));
}

int64_t CyclicOrder::at(int64_t position) const {
  const int64_t inside = position % epoch_samples();
  const int64_t step = inside / shape_.step(), rank = inside % shape_.step() / shape_.micro_batch;
  return take(position / epoch_samples(), rank,
              step * shape_.micro_batch + inside % shape_.micro_batch);
}

int64_t CyclicOrder::take(int64_t epoch, int64_t rank, int64_t own) const {
  const std::scoped_lock lock(mutex_);
  if (epoch != epoch_) torch_permutation(static_cast<uint32_t>(epoch), permutation_);
  epoch_ = epoch;
  if (!sharded_) return permutation_[static_cast<size_t>(own * shape_.ranks + rank)];
  const auto bucket = static_cast<int64_t>(permutation_.size());
  return rank * bucket + permutation_[static_cast<size_t>(own)];
}

std::vector<std::vector<int64_t>> CyclicOrder::batches(int64_t consumed, int64_t rank) const {
  const auto shuffled = static_cast<int64_t>(permutation_.size());
  const int64_t epoch = consumed / epoch_samples();
  const int64_t of_rank = sharded_ ? shuffled : div_ceil(shuffled - rank, shape_.ranks);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t own = consumed % epoch_samples() / shape_.ranks; own + shape_.micro_batch <= of_rank;
       own += shape_.micro_batch) {
    std::vector<int64_t> batch;
    for (int64_t i = 0; i < shape_.micro_batch; ++i) batch.push_back(take(epoch, rank, own + i));
    batches.push_back(std::move(batch));
  }
  return batches;
}

void CyclicDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  samples_->read(order_.at(index), batch, at);
  batch.number_rows(at, index);
}

std::string CyclicDataset::describe(int64_t index) const {
  return format("sample {} of the cyclic order is {}", index, samples_->describe(order_.at(index)));
}

}  // namespace bev
