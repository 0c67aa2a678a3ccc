#include "text/bpe/piece_counter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "text/bpe/gpt2_pre_tokenizer.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr size_t kChunk = size_t{2} << 20;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The first place at or behind `at` where the text may be cut. A function of the place alone, so
// that the end of a chunk is the beginning of the next.
size_t border(std::string_view text, size_t at, TextUnit unit) {
  if (at == 0 || at >= text.size()) return std::min(at, text.size());
  if (unit == TextUnit::Line) {
    const size_t newline = text.find('\n', at - 1);
    return newline == std::string_view::npos ? text.size() : newline + 1;
  }
  for (; at < text.size(); ++at) {
    const char before = text[at - 1];
    if (is_blank(text[at]) && !is_blank(before) && static_cast<unsigned char>(before) < 0x80)
      return at;
  }
  return at;
}

void count_chunk(std::string_view chunk, TextUnit unit, CountUnit count, PieceCounts& counts) {
  std::string replaced;
  if (valid_utf8_prefix(chunk) != chunk.size()) {
    replaced = replace_invalid_utf8(chunk);
    chunk = replaced;
  }
  if (unit == TextUnit::Text) {
    count(chunk, counts);
    return;
  }
  while (!chunk.empty()) {
    const size_t newline = chunk.find('\n');
    const size_t size = newline == std::string_view::npos ? chunk.size() : newline + 1;
    count(chunk.substr(0, size), counts);
    chunk.remove_prefix(size);
  }
}

struct Chunk {
  std::string_view text;  // all of it
  size_t begin;           // the chunk is from the border behind this to the next one
};

// What the threads share.
class Work {
 public:
  Work(std::span<const std::string_view> texts, TextUnit unit, CountUnit count)
      : unit_(unit), count_(count) {
    for (const std::string_view text : texts)
      for (size_t begin = 0; begin < text.size(); begin += kChunk) chunks_.push_back({text, begin});
  }

  // Takes chunks until none is left or a thread has failed.
  void take_part(PieceCounts& counts, FunctionRef<void(int64_t)> progress) noexcept {
    try {
      for (size_t i = next_++; i < chunks_.size() && !stop_; i = next_++) {
        const auto& [text, place] = chunks_[i];
        const size_t begin = border(text, place, unit_);
        const size_t end = border(text, place + kChunk, unit_);
        if (begin < end) count_chunk(text.substr(begin, end - begin), unit_, count_, counts);
        progress(done_ += static_cast<int64_t>(std::min(kChunk, text.size() - place)));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
  }

  void rethrow() {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  TextUnit unit_;
  CountUnit count_;
  std::vector<Chunk> chunks_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> done_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

PieceCounts count_pieces(std::span<const std::string_view> texts, TextUnit unit, int threads,
                         CountUnit count, FunctionRef<void(int64_t)> progress) {
  Work work(texts, unit, count);
  std::vector<PieceCounts> counts(static_cast<size_t>(std::max(threads, 1)));
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < counts.size(); ++i)
      others.emplace_back([&, i] { work.take_part(counts[i], [](int64_t) {}); });
    work.take_part(counts[0], progress);
  }
  work.rethrow();
  for (size_t i = 1; i < counts.size(); ++i) counts[0].add(counts[i]);
  return std::move(counts[0]);
}

void count_gpt2_pieces(std::string_view unit, PieceCounts& counts) {
  const char* end = unit.data() + unit.size();
  Gpt2Pieces pieces(unit);
  std::string_view piece;
  while (pieces.next(piece)) counts.add(piece, static_cast<size_t>(end - piece.data()));
}

}  // namespace bev
