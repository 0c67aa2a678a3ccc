// Messages of any size as a stream of signed frames, without the socket:
//
//   length of what is behind the tag (4 bytes, little-endian), tag (32 bytes), 1 byte: more frames
//   of this message follow; a piece of the message
//
// The tag signs the number of the frame, the byte and the piece. Frames cannot be left out,
// repeated or reordered, and nothing of a frame is looked at before its tag was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/crypto.h"

namespace bev {

inline constexpr size_t kFrameMost = size_t{1} << 20;  // what a frame may have behind its tag

// Messages that wait, and the frames of the first.
class FrameWriter {
 public:
  explicit FrameWriter(const HmacKey& key) : key_(key) {}

  void add(std::shared_ptr<const std::string> message);
  bool is_empty() const { return messages_.empty(); }
  // Appends the next frame. REQUIRES: not empty.
  void write(std::string& out);

 private:
  HmacKey key_;
  uint64_t number_ = 0;
  std::deque<std::shared_ptr<const std::string>> messages_;
  size_t at_ = 0;  // of the first message
};

// A Comm error says what is wrong with the bytes; the reader is of no use then.
class FrameReader {
 public:
  FrameReader(const HmacKey& key, size_t message_most) : key_(key), message_most_(message_most) {}

  void add(std::span<const std::byte> bytes);
  // The next whole message.
  std::optional<std::string> next();

 private:
  // Whether there was one.
  bool read_frame();

  HmacKey key_;
  size_t message_most_;
  uint64_t number_ = 0;
  std::string bytes_, message_;
  size_t at_ = 0;  // of bytes_: what lies before is used
  bool whole_ = false;
};

}  // namespace bev
