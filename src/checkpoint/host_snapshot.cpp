#include "checkpoint/host_snapshot.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/integer.h"

namespace bev {

namespace {

// Behind a parameter of a flat buffer there is a gap of fewer elements than these.
constexpr int64_t kGapLimit = ParamStore::kFlatAlignment;

}  // namespace

Snapshot::Snapshot(Device& device, std::span<const HeldPiece> pieces)
    : device_(device), begins_(pieces.size()) {
  for (const HeldPiece& held : pieces) sizes_.push_back(held.piece.bytes());
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const HeldPiece &x = pieces[a], &y = pieces[b];
    return std::pair(x.buffer, x.flat) < std::pair(y.buffer, y.flat);
  });
  int buffer = -1;
  int64_t end = 0;  // of the last piece, in the flat order
  for (const size_t index : order) {
    const HeldPiece& held = pieces[index];
    if (held.buffer == buffer && held.flat < end + kGapLimit) {
      const auto gap = static_cast<size_t>(held.flat - end) * size_of(held.piece.dtype);
      begins_[index] = bytes_ + gap;
      runs_.back().bytes += gap + held.piece.bytes();
    } else {
      begins_[index] = static_cast<size_t>(round_up(static_cast<int64_t>(bytes_), 64));
      runs_.push_back({held.data, begins_[index], held.piece.bytes()});
    }
    buffer = held.buffer;
    end = held.flat + held.piece.where.elements();
    bytes_ = begins_[index] + held.piece.bytes();
  }
  if (device.is_asynchronous()) {
    pinned_ = PinnedBuffer(device, bytes_);
  } else {
    buffer_.emplace(device, bytes_, "checkpoint copy");
    // The system gives memory when it is touched: now, and not in the first pause.
    constexpr size_t kPageBytes = 4096;
    for (size_t at = 0; buffer_->data() != nullptr && at < bytes_; at += kPageBytes)
      buffer_->data()[at] = std::byte{};
  }
}

void Snapshot::take() {
  // Shares of parameters may still be on their way from other ranks.
  device_.exchange_stream().synchronize();
  const Stream stream = device_.compute_stream();
  for (const Run& run : runs_) device_.download_on(stream, run.from, memory() + run.at, run.bytes);
  stream.synchronize();
}

std::span<const std::byte> Snapshot::bytes_of_piece(size_t index) const {
  return {memory() + begins_[index], sizes_[index]};
}

}  // namespace bev
