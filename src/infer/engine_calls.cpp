#include "infer/engine_calls.h"

#include <algorithm>
#include <utility>

#include "base/byte_coding.h"
#include "base/integer.h"

namespace bev {

namespace {

constexpr size_t kRowLeast = 88;  // bytes of a row in a message, at least

void code(auto& coder, Coded<SamplingOptions> auto& o) {
  coder(o.temperature, o.top_k, o.top_p, o.top_p_decay, o.top_p_bound, o.min_p,
        o.repetition_penalty);
}

void code_ids(auto& coder, auto&& ids) {
  coder.list(ids, sizeof(int32_t), [&](auto& id) { coder(id); });
}

// Of tokens that are in the cache, only how many there are counts, unless choices depend on them.
bool needs_all_tokens(EngineCall::Kind kind, const EngineRow& row) {
  return kind == EngineCall::Kind::Prefill || kind == EngineCall::Kind::Score ||
         row.choice.repetition_penalty != 1;
}

// The number of bytes that follow it, then the call.
std::string message_of(EngineCall::Kind kind, std::span<const EngineRow> rows, int32_t collected,
                       int32_t from, int32_t to) {
  ByteWriter call;
  call(static_cast<uint8_t>(kind), collected, from, to);
  call.list(rows, kRowLeast, [&](const EngineRow& row) {
    const bool all = needs_all_tokens(kind, row) || row.tokens.empty();
    call(row.key, static_cast<int64_t>(row.tokens.size()), all);
    code_ids(call, all ? row.tokens : row.tokens.last(1));
    code_ids(call, row.pages);
    code(call, row.choice);
    // After the prefill only the length of a source is used.
    call(row.source_length, static_cast<int64_t>(row.source.size()));
    code_ids(call, row.source.first(kind == EngineCall::Kind::Prefill ? row.source.size() : 0));
    code_ids(call, row.source_pages);
  });
  ByteWriter message;
  message(call.take());
  return message.take();
}

// What every message takes at least. A step of all rows and short prompts fit into it, unless that
// would make it long.
size_t first_bytes(const EngineLimits& limits) {
  constexpr size_t kLeast = 4 * 1024, kMost = 64 * 1024;
  const std::vector<int32_t> pages(static_cast<size_t>(div_ceil(limits.length, limits.page)));
  const std::vector<int32_t> source_pages(
      static_cast<size_t>(div_ceil(limits.source, limits.page)));
  const EngineRow row{
      .tokens = std::span(pages).first(1), .pages = pages, .source_pages = source_pages};
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

void EngineCalls::share(std::string& message) {
  const size_t first = first_.bytes();
  if (world_.rank() != 0) message.resize(first);
  const auto bytes = [&] { return std::as_writable_bytes(std::span(message)); };
  broadcast(first_, bytes().first(std::min(first, message.size())), first);
  const size_t length = sizeof(uint32_t) + ByteReader(message).number<uint32_t>();
  message.resize(length);
  if (length <= first) return;
  const size_t left = length - first;
  if (left > rest_.bytes())
    rest_ = Buffer(device_, std::max<size_t>(left, 2 * rest_.bytes()), "batches");
  broadcast(rest_, bytes().subspan(first), left);
}

void EngineCalls::send(EngineCall::Kind kind, std::span<const EngineRow> rows, int32_t from,
                       int32_t to) {
  std::string message = message_of(kind, rows, std::exchange(collected_, 0), from, to);
  share(message);
}

EngineCall EngineCalls::receive() {
  std::string message;
  share(message);
  ByteReader reader(std::string_view(message).substr(sizeof(uint32_t)));
  EngineCall call;
  call.kind = static_cast<EngineCall::Kind>(reader.number<uint8_t>());
  reader(call.collected, call.from, call.to);
  reader.list(call.rows, kRowLeast, [&](EngineCall::Row& row) {
    int64_t length = 0, source = 0;
    bool all = false;
    reader(row.key, length, all);
    code_ids(reader, row.tokens);
    if (!all) row.tokens.insert(row.tokens.begin(), static_cast<size_t>(length - 1), 0);
    code_ids(reader, row.pages);
    code(reader, row.choice);
    reader(row.source_length, source);
    code_ids(reader, row.source);
    row.source.resize(static_cast<size_t>(source));
    code_ids(reader, row.source_pages);
  });
  reader.expect_end();
  return call;
}

}  // namespace bev
