// Bytes of a connection to requests of HTTP/1.0 and 1.1. For bytes that may be hostile: strict,
// bounded, without sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/http/http_message.h"

namespace bev {

// Bytes that come at the end and are used from the front.

// However small the pieces, no more bytes are moved than are used.
class ByteQueue {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }

  // What is not used yet; until the next call of another function.
  std::string_view view() const { return std::string_view(bytes_).substr(used_); }
  size_t size() const { return bytes_.size() - used_; }
  bool empty() const { return size() == 0; }

  // REQUIRES: count <= size().
  void use(size_t count) {
    used_ += count;
    if (size() > used_) return;
    bytes_.erase(0, used_);
    used_ = 0;
  }

 private:
  std::string bytes_;
  size_t used_ = 0;  // of them
};

struct HttpSizes {
  size_t header_bytes = size_t{16} << 10;  // the lines in front of a body
  size_t body_bytes = size_t{1} << 20;
};

class HttpParser {
 public:
  explicit HttpParser(const HttpSizes& sizes) : sizes_(sizes) {}

  // What came next.
  void add(std::string_view bytes) { bytes_.add(bytes); }

  enum class State : uint8_t {
    NeedsMore,
    Ready,  // take() has a request
    Bad,    // status() and problem() say why; nothing more can be read of this connection
  };
  // Looks at what came. With the same bytes the answer does not depend on the pieces they came in.
  State advance();

  // The request; what came behind it stays for the next. REQUIRES: advance() said Ready.
  HttpRequest take();

  int status() const { return status_; }
  const std::string& problem() const { return problem_; }

  // Some of a request is there, not all.
  bool has_begun() const { return part_ != Part::Lines || !bytes_.empty(); }
  // The sender waits for a word before it sends the body. Asking again is answered with no.
  bool takes_expectation();
  // Bytes that came and belong to no request yet.
  size_t waiting() const { return bytes_.size(); }

 private:
  enum class Part : uint8_t { Lines, Body, ChunkSize, Chunk, ChunkEnd, Trailer, Done, Bad };

  bool read_lines();
  bool read_head(std::string_view head);
  bool read_request_line(std::string_view line);
  bool read_header(std::string_view line);
  bool read_framing();
  bool read_length(std::string_view text);
  bool read_body();
  bool read_chunk_size();
  bool read_chunk();
  bool read_chunk_end();
  bool read_trailer();
  bool refuse(int status, std::string problem);
  void consume(size_t count);

  HttpSizes sizes_;
  ByteQueue bytes_;
  size_t searched_ = 0;  // of them, that cannot begin the end of a line or of the lines
  Part part_ = Part::Lines;
  HttpRequest request_;
  size_t left_ = 0;  // bytes of the body or the chunk that have not come
  size_t trailer_bytes_ = 0;
  bool expects_ = false;
  int status_ = 0;
  std::string problem_;
};

}  // namespace bev
