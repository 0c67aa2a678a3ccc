// libFuzzer: whatever bytes come to the server's end of a link, they are refused with a Comm error
// or waited for; and whatever is done to the bytes of a true client, the server takes a prefix of
// what the client said and nothing else. The first byte chooses: as they are, behind a true
// handshake, as bodies of signed frames, or as changes (place, bits) of true frames.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "net/secure_link.h"

namespace {

constexpr size_t kMost = 100000;

void require(bool condition) {
  if (!condition) std::abort();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string take(bev::SecureLink& link) {
  std::string all;
  for (std::string_view out = link.outgoing(); !out.empty(); out = link.outgoing()) {
    all += out;
    link.written(out.size());
  }
  return all;
}

// What the server makes of the bytes, which come in pieces.
std::vector<std::string> read(bev::SecureLink& server, std::string_view bytes, size_t piece) {
  std::vector<std::string> messages;
  try {
    for (size_t at = 0; at < bytes.size(); at += piece) {
      server.receive(bytes_of(bytes.substr(at, piece)));
      while (std::optional<std::string> message = server.next()) {
        require(message->size() <= kMost);
        messages.push_back(std::move(*message));
      }
    }
  } catch (const bev::Error& error) {
    require(error.kind == bev::ErrorKind::Comm);
  }
  return messages;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const bev::HmacKey secret("secret");
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t piece = 1 + data[1];
  bev::SecureLink server(bev::LinkRole::Server, secret, kMost);
  if (data[0] % 4 == 0) {
    require(read(server, bytes, piece).empty() && !server.is_open());
    return 0;
  }
  bev::SecureLink client(bev::LinkRole::Client, secret, kMost);
  server.receive(bytes_of(take(client)));
  client.receive(bytes_of(take(server)));
  server.receive(bytes_of(take(client)));
  require(server.is_open() && client.is_open());
  if (data[0] % 4 == 1) {
    require(read(server, bytes, piece).empty());
    return 0;
  }
  // Messages that are divided by zero bytes.
  std::vector<std::string> said;
  for (size_t at = 0; at <= bytes.size();) {
    const size_t end = std::min(bytes.find('\0', at), bytes.size());
    said.emplace_back(bytes.substr(at, end - at));
    client.send(std::make_shared<const std::string>(said.back()));
    at = end + 1;
  }
  std::string frames = take(client);
  const bool changed = data[0] % 4 == 3 && bytes.size() >= 3;
  if (changed) {
    const size_t at =
        (static_cast<uint8_t>(bytes[0]) << 8 | static_cast<uint8_t>(bytes[1])) % frames.size();
    frames[at] = static_cast<char>(frames[at] ^ (bytes[2] | 1));
  }
  const std::vector<std::string> heard = read(server, frames, piece);
  require(changed ? heard.size() < said.size() : heard.size() == said.size());
  for (size_t i = 0; i < heard.size(); ++i) require(heard[i] == said[i]);
  return 0;
}
