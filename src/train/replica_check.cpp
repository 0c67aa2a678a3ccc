#include "train/replica_check.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "comm/shared_text.h"
#include "ops/reduce.h"

namespace bev {

namespace {

// Whether all ranks bring the same number.
bool is_common(Communicator& ranks, int64_t here) {
  const int64_t most = ranks.largest(here), least = -ranks.largest(-here);
  return most == least;
}

std::string list_of(const std::vector<int64_t>& ranks) {
  return format("rank{} {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "));
}

}  // namespace

ReplicaCheck::ReplicaCheck(Assembly& assembly) : assembly_(assembly) {
  Groups& groups = assembly.groups;
  const ParallelLayout& layout = groups.layout();
  Shared over_data{&groups.data(), {}}, over_tensor{&groups.tensor(), {}}, over_ends{nullptr, {}};
  if (!assembly.params.is_divided()) {
    for (Param* param : assembly.params.distinct()) {
      const size_t place = tensors_.size();
      tensors_.push_back({param->spec.name, param->value});
      over_data.tensors.push_back(place);
      if (!param->spec.cut) over_tensor.tensors.push_back(place);
      if (sums_over(param->spec, Axis::Pipeline)) over_ends.tensors.push_back(place);
    }
    if (layout.zero == 0) {
      for (const Optimizer::State& state : assembly.optimizer->states()) {
        over_data.tensors.push_back(tensors_.size());
        tensors_.push_back({std::string(state.name), state.flat});
      }
    }
  }
  if (!over_ends.tensors.empty() && layout.pipeline > 1) over_ends.ranks = &groups.ends();
  for (const Shared& shared : {over_data, over_tensor, over_ends})
    if (shared.ranks != nullptr && shared.ranks->size() > 1 && !shared.tensors.empty())
      shared_.push_back(shared);
  memory_ = Buffer(assembly.device, std::max<size_t>(1, tensors_.size()) * sizeof(int64_t),
                   "hashes of weights");
}

std::vector<int64_t> ReplicaCheck::hashes() {
  // Parameters may still be on their way.
  assembly_.device.exchange_stream().synchronize();
  Exec ex = assembly_.executor.exec();
  std::vector<int64_t> hashes(tensors_.size(), 0);
  const size_t bytes = hashes.size() * sizeof(int64_t);
  assembly_.device.upload(hashes.data(), memory_.data(), bytes);
  for (size_t i = 0; i < tensors_.size(); ++i)
    ops::hash_bits(ex, {.x = tensors_[i].tensor,
                        .out = tensor_over(memory_.data() + i * sizeof(int64_t), DType::i64, {1})});
  ex.stream.synchronize();
  assembly_.device.download(memory_.data(), hashes.data(), bytes);
  // A number and its opposite must both be representable.
  for (int64_t& hash : hashes) hash &= INT64_MAX;
  return hashes;
}

std::string ReplicaCheck::find_difference() {
  Communicator& world = assembly_.groups.world();
  if (world.size() == 1) return "";
  const std::vector<int64_t> hashed = hashes();
  std::string text;
  // Other ranks take part in each comparison, whatever was found before.
  for (const Shared& shared : shared_) {
    const std::string found = compare(shared, hashed);
    if (text.empty()) text = found;
  }
  // The first rank that found something tells the others.
  const auto first = static_cast<int>(
      world.size() - 1 - world.largest(text.empty() ? -1 : world.size() - 1 - world.rank()));
  if (first >= world.size()) return "";
  return shared_text(world, text, first);
}

std::string ReplicaCheck::compare(const Shared& shared, const std::vector<int64_t>& hashes) {
  uint64_t all = 0;
  for (const size_t i : shared.tensors) all = all * 31 + static_cast<uint64_t>(hashes[i]);
  if (is_common(*shared.ranks, static_cast<int64_t>(all >> 1))) return "";
  for (const size_t i : shared.tensors)
    if (!is_common(*shared.ranks, hashes[i]))
      return name_ranks(*shared.ranks, tensors_[i], hashes[i]);
  return "";
}

std::string ReplicaCheck::name_ranks(Communicator& ranks, const Hashed& hashed, int64_t hash) {
  std::map<int64_t, std::vector<int64_t>> holders;  // of each hash, by their number in the world
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const bool is_own = rank == ranks.rank();
    const int64_t of_rank = ranks.largest(is_own ? hash : -1);
    const int64_t number = ranks.largest(is_own ? assembly_.groups.world().rank() : -1);
    holders[of_rank].push_back(number);
  }
  const auto most = std::max_element(
      holders.begin(), holders.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  std::vector<int64_t> others;
  for (const auto& [value, numbers] : holders)
    if (value != most->first) others.insert(others.end(), numbers.begin(), numbers.end());
  std::sort(others.begin(), others.end());
  if (most->second.size() > others.size())
    return format("{} of {} differs from that of {}", hashed.name, list_of(others),
                  list_of(most->second));
  std::vector<int64_t> all = others;
  all.insert(all.end(), most->second.begin(), most->second.end());
  std::sort(all.begin(), all.end());
  return format("{} is not the same on {}, and there is no majority that tells which is right",
                hashed.name, list_of(all));
}

}  // namespace bev
