#include "infer/text_streamer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr std::string_view kReplacement = "\uFFFD";

// So many ids wait for those behind them at most.
constexpr size_t kMostPending = 64;

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// A token that is nothing but letters and digits, and no byte ("<0x41>"); none when the vocabulary
// has no such token.
std::vector<int32_t> find_anchor(const Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string text = tokenizer.decode({&id, 1}, SpecialIds::LeaveOut);
    if (!text.empty() && std::all_of(text.begin(), text.end(), is_letter_or_digit) &&
        !tokenizer.token_name(id).starts_with('<'))
      return {id};
  }
  return {};
}

struct FoundStop {
  size_t at, end;
};

// The stop string that is complete first, of several the longest: so where a text ends does not
// depend on how it was cut into tokens.
FoundStop first_stop(std::string_view text, std::span<const std::string> stops) {
  FoundStop first{std::string_view::npos, std::string_view::npos};
  for (const std::string& stop : stops) {
    const size_t at = text.find(stop);
    if (at == std::string_view::npos) continue;
    const FoundStop found{at, at + stop.size()};
    if (found.end < first.end || (found.end == first.end && found.at < first.at)) first = found;
  }
  return first;
}

// The length of the longest end of the text with which a stop string begins.
size_t begun_stop(std::string_view text, std::span<const std::string> stops) {
  size_t longest = 0;
  for (const std::string& stop : stops)
    for (size_t length = std::min(stop.size() - 1, text.size()); length > longest; --length)
      if (text.ends_with(std::string_view(stop).substr(0, length))) longest = length;
  return longest;
}

}  // namespace

TextStreamer::TextStreamer(const Tokenizer& tokenizer, std::vector<std::string> stops,
                           std::span<const int32_t> prompt, SpecialIds special)
    : tokenizer_(&tokenizer),
      special_(special),
      stops_(std::move(stops)),
      anchor_(find_anchor(tokenizer)),
      anchor_text_(tokenizer.decode(anchor_, SpecialIds::LeaveOut)),
      has_begun_(!tokenizer.decode(prompt, SpecialIds::LeaveOut).empty()) {
  for (const std::string& stop : stops_)
    BEV_CHECK(!stop.empty() && valid_utf8_prefix(stop) == stop.size(), Internal,
              "a stop string is empty or not UTF-8");
}

std::string TextStreamer::pending_text() const {
  if (!has_begun_) return tokenizer_->decode(pending_, special_);
  std::vector<int32_t> ids = anchor_;
  ids.insert(ids.end(), pending_.begin(), pending_.end());
  const std::string text = tokenizer_->decode(ids, special_);
  return text.substr(std::min(anchor_text_.size(), text.size()));
}

TextStreamer::Piece TextStreamer::add(int32_t id) {
  if (is_stopped_) return {.text = {}, .stopped = true};
  pending_.push_back(id);
  const std::string text = pending_text();
  const bool is_full = pending_.size() > kMostPending;
  // A replaced byte may become a character with the next one.
  if (text.ends_with(kReplacement) && !is_full) return {};
  if (text.empty() && !has_begun_) {
    // Ids without any text may still be what makes the next one not the first.
    if (is_full) pending_.pop_back();
    return {};
  }
  pending_.clear();
  has_begun_ = true;
  return take(text, false);
}

std::string TextStreamer::finish() {
  if (is_stopped_) return {};
  const std::string text = pending_text();
  pending_.clear();
  return take(text, true).text;
}

TextStreamer::Piece TextStreamer::take(std::string_view bytes, bool is_last) {
  unfinished_ += bytes;
  const size_t whole = is_last ? unfinished_.size() : complete_utf8(unfinished_);
  held_ += replace_invalid_utf8(std::string_view(unfinished_).substr(0, whole));
  unfinished_.erase(0, whole);

  const FoundStop stop = first_stop(held_, stops_);
  is_stopped_ = stop.at != std::string::npos;
  size_t given = held_.size();
  if (is_stopped_) {
    given = stop.at;
  } else if (!is_last) {
    given -= begun_stop(held_, stops_);
  }
  Piece piece{.text = held_.substr(0, given), .stopped = is_stopped_};
  held_.erase(0, given);
  return piece;
}

}  // namespace bev
