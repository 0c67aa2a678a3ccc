// libFuzzer: any bytes as a connection of HTTP are read without a fault, into the same requests
// whatever the pieces they come in, within the limits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "serve/http/http_parser.h"

namespace {

constexpr bev::HttpSizes kSizes{.header_bytes = 300, .body_bytes = 200};

// All requests and the end, as text.
std::string read_in_pieces(std::string_view bytes, size_t piece) {
  bev::HttpParser parser(kSizes);
  std::string heard;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    parser.add(bytes.substr(0, piece));
    bev::HttpParser::State state = parser.advance();
    while (state == bev::HttpParser::State::Ready) {
      const bev::HttpRequest request = parser.take();
      if (request.body.size() > kSizes.body_bytes || !request.path.starts_with('/')) std::abort();
      heard += request.method + request.path + "|" + request.body + "|";
      for (const bev::HttpHeader& header : request.headers)
        heard += header.name + ":" + header.value + "\n";
      state = parser.advance();
    }
    if (state == bev::HttpParser::State::Bad) {
      if (parser.status() < 400 || parser.problem().empty()) std::abort();
      return heard + std::to_string(parser.status());
    }
    if (parser.waiting() > kSizes.header_bytes + piece) std::abort();
  }
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (read_in_pieces(bytes, size) != read_in_pieces(bytes, 1 + data[0] % 7)) std::abort();
  return 0;
}
