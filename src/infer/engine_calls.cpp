#include "infer/engine_calls.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/integer.h"

namespace bev {

namespace {

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof(T));
  }
  void put_all(std::span<const int32_t> values) {
    put(std::ssize(values));
    append(values.data(), values.size_bytes());
  }

  std::vector<std::byte> bytes;

 private:
  void append(const void* from, size_t count) {
    if (count == 0) return;
    const size_t before = bytes.size();
    bytes.resize(before + count);
    std::memcpy(bytes.data() + before, from, count);
  }
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  T get() {
    T value;
    copy(&value, sizeof(T));
    return value;
  }
  std::vector<int32_t> get_all() {
    const auto count = static_cast<size_t>(get<ptrdiff_t>());
    BEV_CHECK(count <= rest_.size() / sizeof(int32_t), Internal, "a call of a decoder is cut off");
    std::vector<int32_t> values(count);
    copy(values.data(), count * sizeof(int32_t));
    return values;
  }

 private:
  void copy(void* to, size_t bytes) {
    BEV_CHECK(bytes <= rest_.size(), Internal, "a call of a decoder is cut off");
    if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
  }

  std::span<const std::byte> rest_;
};

// Of tokens that are in the cache, only how many there are counts, unless choices depend on them.
bool needs_all_tokens(EngineCall::Kind kind, const EngineRow& row) {
  return kind == EngineCall::Kind::Prefill || kind == EngineCall::Kind::Score ||
         row.choice.repetition_penalty != 1;
}

// What a message begins with.
struct MessageHead {
  int64_t bytes = 0;  // of the message
  int64_t rows = 0;
  int32_t collected = 0, from = 0, to = 0;
  EngineCall::Kind kind{};
};

std::vector<std::byte> message_of(EngineCall::Kind kind, std::span<const EngineRow> rows,
                                  int32_t collected, int32_t from, int32_t to) {
  MessageHead head{
      .rows = std::ssize(rows), .collected = collected, .from = from, .to = to, .kind = kind};
  Writer writer;
  writer.put(head);
  for (const EngineRow& row : rows) {
    const bool all = needs_all_tokens(kind, row) || row.tokens.empty();
    writer.put(std::ssize(row.tokens));
    writer.put(all);
    writer.put_all(all ? row.tokens : row.tokens.last(1));
    writer.put_all(row.pages);
    writer.put(row.choice);
    writer.put(row.key);
  }
  head.bytes = std::ssize(writer.bytes);
  std::memcpy(writer.bytes.data(), &head, sizeof(head));
  return std::move(writer.bytes);
}

// What every message takes at least. A step of all rows and short prompts fit into it, unless that
// would make it long.
size_t first_bytes(const EngineLimits& limits) {
  constexpr size_t kLeast = 4 * 1024, kMost = 64 * 1024;
  const std::vector<int32_t> pages(static_cast<size_t>(div_ceil(limits.length, limits.page)));
  const EngineRow row{.tokens = std::span(pages).first(1), .pages = pages};
  const auto bytes_of = [](std::span<const EngineRow> rows) {
    return message_of(EngineCall::Kind::Decode, rows, 0, 0, 0).size();
  };
  const size_t none = bytes_of({}), each = bytes_of({&row, 1}) - none;
  return std::clamp(none + static_cast<size_t>(limits.rows) * each, kLeast, kMost);
}

}  // namespace

EngineCalls::EngineCalls(Communicator& world, Device& device, const EngineLimits& limits)
    : world_(world), device_(device), first_(device, first_bytes(limits), "batches") {}

// The first rank's bytes go to the buffer, and from there, with `sent` bytes in all, to the others.
void EngineCalls::broadcast(Buffer& buffer, std::span<std::byte> bytes, size_t sent) {
  Arena none(device_, 0, "none");
  Exec ex{device_, device_.compute_stream(), none, none, none};
  if (world_.rank() == 0) device_.upload(bytes.data(), buffer.data(), bytes.size());
  world_.broadcast(ex, tensor_over(buffer.data(), DType::u8, {static_cast<int64_t>(sent)}), 0);
  ex.stream.synchronize();
  if (world_.rank() != 0) device_.download(buffer.data(), bytes.data(), bytes.size());
}

void EngineCalls::share(std::vector<std::byte>& message) {
  const size_t first = first_.bytes();
  if (world_.rank() != 0) message.resize(first);
  broadcast(first_, std::span(message).first(std::min(first, message.size())), first);
  const auto length = static_cast<size_t>(Reader(message).get<MessageHead>().bytes);
  message.resize(length);
  if (length <= first) return;
  const size_t left = length - first;
  if (left > rest_.bytes())
    rest_ = Buffer(device_, std::max<size_t>(left, 2 * rest_.bytes()), "batches");
  broadcast(rest_, std::span(message).subspan(first), left);
}

void EngineCalls::send(EngineCall::Kind kind, std::span<const EngineRow> rows, int32_t from,
                       int32_t to) {
  std::vector<std::byte> message = message_of(kind, rows, std::exchange(collected_, 0), from, to);
  share(message);
}

EngineCall EngineCalls::receive() {
  std::vector<std::byte> message;
  share(message);
  Reader reader(message);
  const MessageHead head = reader.get<MessageHead>();
  EngineCall call{.kind = head.kind, .collected = head.collected, .from = head.from, .to = head.to};
  for (int64_t i = 0; i < head.rows; ++i) {
    EngineCall::Row row;
    const auto length = reader.get<ptrdiff_t>();
    const bool all = reader.get<bool>();
    row.tokens = reader.get_all();
    if (!all) row.tokens.insert(row.tokens.begin(), static_cast<size_t>(length - 1), 0);
    row.pages = reader.get_all();
    row.choice = reader.get<SamplingOptions>();
    row.key = reader.get<int64_t>();
    call.rows.push_back(std::move(row));
  }
  return call;
}

}  // namespace bev
