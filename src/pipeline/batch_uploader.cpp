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

MicroBatch BatchUploader::upload(const HostBatch& batch, size_t slot) {
  Entry& entry = entries_[2 * slot + (second_[slot] ? 1 : 0)];
  second_[slot] = !second_[slot];
  const Stream compute = device_.compute_stream(), copy = device_.copy_stream();
  device_.finish(entry.copied);  // Long past, unless the host is several micro-batches ahead.
  // Readers of the entry's last batch were issued before the upload in between, or earlier.
  copy.wait(before_);
  before_ = compute.record();
  entry.arena.release(0);
  const std::span<const std::byte> host = batch.block();
  const Tensor block =
      entry.arena.allocate({static_cast<int64_t>(host.size())}, DType::u8, "batch");
  if (block.data != nullptr) {
    std::memcpy(entry.pinned.data(), host.data(), host.size());
    device_.upload_on(copy, entry.pinned.data(), block.data, host.size());
  }
  MicroBatch micro;
  for (size_t i = 0; i < batch.text_count(); ++i) {
    TextView& text = micro.texts[batch.joined() ? 0 : i];
    text.sequences += batch.sequences;
    text.length = batch.text(i).length;
  }
  for (const HostBatch::Placed& placed : batch.fields()) {
    ConstTensor& field = micro.texts[batch.joined() ? 0 : placed.text][placed.field];
    if (field.present()) {  // a joined text, of which this is the second part
      field = tensor_over(field.data, field.dtype, {field.shape[0] + placed.elements});
    } else {
      field = tensor_over(block.data != nullptr ? block.data + placed.offset : nullptr,
                          dtype_of(placed.field), {placed.elements});
    }
  }
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
