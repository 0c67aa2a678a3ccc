#include "pipeline/batch_uploader.h"

#include <algorithm>
#include <cstring>

namespace bev {

BatchUploader::BatchUploader(Device& device, size_t bytes, size_t slots)
    : device_(device), second_(slots) {
  const bool plans = device.kind() == DeviceKind::Null;
  for (size_t i = 0; i < copies(static_cast<int>(slots)); ++i) {
    entries_.push_back(
        {Arena(device, bytes, "batches"), plans ? PinnedBuffer{} : PinnedBuffer(device, bytes)});
  }
}

template <class T>
ConstTensor BatchUploader::put(Entry& entry, const std::vector<T>& host, const char* name) {
  if (host.empty()) return {};
  const size_t offset = entry.arena.mark();
  const Tensor t =
      entry.arena.allocate({static_cast<int64_t>(host.size())}, DTypeOf<T>::value, name);
  if (t.data == nullptr) return t;
  std::byte* pinned = entry.pinned.data() + offset;
  std::memcpy(pinned, host.data(), host.size() * sizeof(T));
  device_.upload_on(device_.copy_stream(), pinned, t.data, host.size() * sizeof(T));
  return t;
}

MicroBatch BatchUploader::upload(const HostBatch& batch, size_t slot) {
  Entry& entry = entries_[2 * slot + (second_[slot] ? 1 : 0)];
  second_[slot] = !second_[slot];
  const Stream compute = device_.compute_stream(), copy = device_.copy_stream();
  device_.finish(entry.copied);  // Long past, unless the host is several micro-batches ahead.
  // Whoever reads what this entry held was issued before the load between, or an earlier one.
  copy.wait(before_);
  before_ = compute.record();
  entry.arena.release(0);
  const MicroBatch micro{
      .sequences = batch.sequences,
      .length = batch.length,
      .tokens = put(entry, batch.tokens, "batch.tokens"),
      .targets = put(entry, batch.targets, "batch.targets"),
      .positions = put(entry, batch.positions, "batch.positions"),
      .weight = put(entry, batch.weight, "batch.weight"),
      .rows = put(entry, batch.rows, "batch.rows"),
      .document_start = put(entry, batch.document_start, "batch.document_start")};
  entry.copied = copy.record();
  compute.wait(entry.copied);
  return micro;
}

size_t BatchUploader::peak() const {
  size_t most = 0;
  for (const Entry& entry : entries_) most = std::max(most, entry.arena.peak());
  return most;
}

}  // namespace bev
