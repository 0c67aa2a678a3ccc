#include "infer/decoder_calls.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"

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
bool needs_all_tokens(DecoderCall::Kind kind, const DecoderRow& row) {
  return kind == DecoderCall::Kind::Prefill || kind == DecoderCall::Kind::Score ||
         row.choice.repetition_penalty != 1;
}

}  // namespace

DecoderCalls::DecoderCalls(Communicator& world, Device& device)
    : world_(world), device_(device), size_(device, sizeof(int64_t), "batches") {}

void DecoderCalls::share(std::vector<std::byte>& bytes) {
  Arena none(device_, 0, "none");
  Exec ex{device_, device_.compute_stream(), none, none, none};
  auto size = std::ssize(bytes);
  device_.upload(&size, size_.data(), sizeof(size));
  world_.broadcast(ex, tensor_over(size_.data(), DType::i64, {1}), 0);
  ex.stream.synchronize();
  device_.download(size_.data(), &size, sizeof(size));
  bytes.resize(static_cast<size_t>(size));
  if (bytes.size() > buffer_.bytes())
    buffer_ = Buffer(device_, std::max<size_t>(bytes.size(), 2 * buffer_.bytes()), "batches");
  if (world_.rank() == 0) device_.upload(bytes.data(), buffer_.data(), bytes.size());
  world_.broadcast(ex, tensor_over(buffer_.data(), DType::u8, {size}), 0);
  ex.stream.synchronize();
  if (world_.rank() != 0) device_.download(buffer_.data(), bytes.data(), bytes.size());
}

void DecoderCalls::tell(DecoderCall::Kind kind, std::span<const DecoderRow> rows, int32_t from,
                        int32_t to) {
  Writer writer;
  writer.put(kind);
  writer.put(from);
  writer.put(to);
  writer.put(std::ssize(rows));
  for (const DecoderRow& row : rows) {
    const bool all = needs_all_tokens(kind, row) || row.tokens.empty();
    writer.put(std::ssize(row.tokens));
    writer.put(all);
    writer.put_all(all ? row.tokens : row.tokens.last(1));
    writer.put_all(row.pages);
    writer.put(row.choice);
    writer.put(row.key);
  }
  share(writer.bytes);
}

DecoderCall DecoderCalls::hear() {
  std::vector<std::byte> bytes;
  share(bytes);
  Reader reader(bytes);
  DecoderCall call;
  call.kind = reader.get<DecoderCall::Kind>();
  call.from = reader.get<int32_t>();
  call.to = reader.get<int32_t>();
  const auto rows = reader.get<ptrdiff_t>();
  for (ptrdiff_t i = 0; i < rows; ++i) {
    DecoderCall::Row row;
    const auto length = reader.get<ptrdiff_t>();
    const bool all = reader.get<bool>();
    row.tokens = reader.get_all();
    if (!all) row.tokens.insert(row.tokens.begin(), static_cast<size_t>(length - 1), 0);
    row.pages = reader.get_all();
    row.choice = reader.get<ChoiceOptions>();
    row.key = reader.get<int64_t>();
    call.rows.push_back(std::move(row));
  }
  return call;
}

}  // namespace bev
