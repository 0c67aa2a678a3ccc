#include "infer/continuous_batcher.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/integer.h"
#include "base/philox.h"

namespace bev {

namespace {

int64_t draw_key(const GenerationRequest& r) {
  return static_cast<int64_t>(
      mix_key(mix_key(r.seed, "sampling"), static_cast<uint64_t>(r.sample)));
}

bool is_between(double value, double low, double high) { return value >= low && value <= high; }

std::string why_not_choice(const SamplingOptions& c) {
  if (!is_between(c.temperature, 0, 1e6)) return "the temperature is not between 0 and 1e6";
  if (c.top_k < 0) return "top_k is negative";
  if (!is_between(c.top_p, 0, 1)) return "top_p is not between 0 and 1";
  if (!is_between(c.top_p_decay, 0, 1)) return "top_p_decay is not between 0 and 1";
  if (!is_between(c.top_p_bound, 0, 1)) return "top_p_bound is not between 0 and 1";
  if (!is_between(c.min_p, 0, 1)) return "min_p is not between 0 and 1";
  if (!is_between(c.repetition_penalty, 1e-3, 1e3))
    return "the repetition penalty is not between 0.001 and 1000";
  return {};
}

// Tokens that prefill computes.
int64_t prefill_tokens(const GenerationRequest& r) {
  return std::ssize(r.source.ids.empty() ? r.prompt : r.source.ids);
}

}  // namespace

std::vector<ScoredToken> likeliest(std::span<const float> logits, int64_t count) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto kept = std::min(ids.begin() + count, ids.end());
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  std::partial_sort(ids.begin(), kept, ids.end(), [&](int32_t a, int32_t b) {
    return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
  });
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float value : logits) sum += std::exp(value - max);
  std::vector<ScoredToken> tokens;
  for (auto id = ids.begin(); id < kept; ++id)
    tokens.push_back({*id, logit(*id) - max - std::log(sum)});
  return tokens;
}

ContinuousBatcher::ContinuousBatcher(InferenceEngine& decoder)
    : decoder_(decoder), free_pages_(static_cast<size_t>(decoder.limits().pages)) {
  std::iota(free_pages_.rbegin(), free_pages_.rend(), 0);
}

// The last token of a text is never in the cache.
int64_t ContinuousBatcher::pages_of(const GenerationRequest& request) const {
  if (request.tokens == 0) return 0;
  const int64_t places = std::ssize(request.prompt) + request.tokens - 1;
  return div_ceil(places, decoder_.limits().page) + source_pages_of(request);
}

int64_t ContinuousBatcher::source_pages_of(const GenerationRequest& request) const {
  return div_ceil(std::ssize(request.source.ids), decoder_.limits().page);
}

std::string ContinuousBatcher::why_not_source(const GenerationRequest& request) const {
  const int64_t tokens = std::ssize(request.source.ids), most = decoder_.limits().source;
  if (most == 0) return tokens == 0 ? "" : "this model has no encoder";
  if (request.source.length < 1 || request.source.length > tokens) return "the prompt is empty";
  if (tokens > most)
    return format("the prompt has {} tokens, but the encoder reads at most {}", tokens, most);
  if (request.prompt.size() != 1) return "the decoder begins with one token";
  if (request.score_prompt) return "an encoder gives the tokens of a prompt no probabilities";
  return {};
}

std::string ContinuousBatcher::why_not(const GenerationRequest& request) const {
  const EngineLimits& limits = decoder_.limits();
  const int64_t prompt = std::ssize(request.prompt);
  if (prompt == 0) return "the prompt is empty";
  if (std::string problem = why_not_source(request); !problem.empty()) return problem;
  if (request.tokens < 0) return "the number of tokens is negative";
  if (prompt + request.tokens > limits.length)
    return format("the prompt has {} tokens, {} more are wanted, and {} is what fits", prompt,
                  request.tokens, limits.length);
  if (pages_of(request) > limits.pages)
    return format("the text would take {} pages of the cache, which has {}", pages_of(request),
                  limits.pages);
  for (const std::vector<int32_t>* ids : {&request.prompt, &request.source.ids})
    for (const int32_t id : *ids)
      if (id < 0 || id >= decoder_.vocab())
        return format("the prompt has the id {}, the vocabulary ends with {}", id,
                      decoder_.vocab() - 1);
  if (request.alternatives < 0 || request.alternatives > decoder_.vocab())
    return format("{} alternatives of {} tokens", request.alternatives, decoder_.vocab());
  return why_not_choice(request.choice);
}

int64_t ContinuousBatcher::submit(GenerationRequest request, TokenSink sink) {
  BEV_CHECK(why_not(request).empty(), Internal, "{}", why_not(request));
  Text text{.number = next_number_++, .request = std::move(request), .sink = std::move(sink)};
  text.tokens = text.request.prompt;
  waiting_.push_back(std::move(text));
  return waiting_.back().number;
}

void ContinuousBatcher::cancel(int64_t number) {
  std::erase_if(waiting_, [&](const Text& text) { return text.number == number; });
  for (Text& text : running_)
    if (text.number == number) text.has_ended = true;
  if (on_their_way_ == 0 && !is_stepping_) remove_ended();
}

size_t ContinuousBatcher::running() const {
  return static_cast<size_t>(std::count_if(running_.begin(), running_.end(),
                                           [](const Text& text) { return !text.has_ended; }));
}

bool ContinuousBatcher::can_start(const GenerationRequest& request) const {
  return std::ssize(running_) < decoder_.limits().rows &&
         pages_of(request) <= std::ssize(free_pages_);
}

std::vector<ContinuousBatcher::Text*> ContinuousBatcher::take_waiting() {
  std::vector<Text*> texts;
  int64_t longest = 0;
  while (!waiting_.empty() && can_start(waiting_.front().request)) {
    const int64_t length = prefill_tokens(waiting_.front().request);
    const int64_t next_longest = std::max(longest, length);
    const auto count = std::ssize(texts) + 1;
    // All are computed as long as the longest: one that is much shorter or longer starts later.
    const bool is_alike = texts.empty() || 2 * std::min(longest, length) >= next_longest;
    if (!is_alike || !decoder_.fits(count, next_longest)) break;
    longest = next_longest;
    Text& text = running_.emplace_back(std::move(waiting_.front()));
    waiting_.pop_front();
    const int64_t pages = pages_of(text.request);
    const int64_t source_pages = pages > 0 ? source_pages_of(text.request) : 0;
    text.pages = take_pages(pages - source_pages);
    text.source_pages = take_pages(source_pages);
    texts.push_back(&text);
  }
  return texts;
}

std::vector<int32_t> ContinuousBatcher::take_pages(int64_t count) {
  const auto kept = free_pages_.end() - count;
  std::vector<int32_t> pages(std::make_reverse_iterator(free_pages_.end()),
                             std::make_reverse_iterator(kept));
  free_pages_.erase(kept, free_pages_.end());
  return pages;
}

EngineRow ContinuousBatcher::row_of(const Text& text, int64_t ahead) const {
  EngineRow row{.tokens = text.tokens,
                .pages = text.pages,
                .choice = text.request.choice,
                .key = draw_key(text.request),
                .source = text.request.source.ids,
                .source_length = text.request.source.length,
                .source_pages = text.source_pages};
  SamplingOptions& c = row.choice;
  const auto generated = static_cast<double>(text.generated() + ahead);
  if (c.top_p_decay != 1)
    c.top_p = std::max(c.top_p_bound, c.top_p * std::pow(c.top_p_decay, generated));
  return row;
}

std::vector<EngineRow> ContinuousBatcher::rows_of(int64_t ahead) const {
  std::vector<EngineRow> rows;
  rows.reserve(rows_.size());
  for (const Text* text : rows_) rows.push_back(row_of(*text, ahead));
  return rows;
}

std::vector<ScoredToken> ContinuousBatcher::prompt_scores(const Text& text) const {
  const EngineRow row{.tokens = text.request.prompt};
  const std::vector<double> logprobs = decoder_.score({&row, 1});
  std::vector<ScoredToken> scores;
  scores.reserve(logprobs.size());
  for (size_t i = 0; i < logprobs.size(); ++i)
    scores.push_back({text.request.prompt[i + 1], logprobs[i]});
  return scores;
}

void ContinuousBatcher::start(const std::vector<Text*>& texts) {
  rows_.clear();
  for (Text* text : texts) {
    if (text->request.score_prompt) {
      TokenEvent event{.prompt = prompt_scores(*text)};
      if (text->request.tokens == 0) event.finish = FinishReason::Length;
      text->sink(event);
    } else if (text->request.tokens == 0) {
      text->sink({.finish = FinishReason::Length});
    }
    if (text->request.tokens == 0) text->has_ended = true;
    if (!text->has_ended) rows_.push_back(text);
  }
  if (rows_.empty()) return;
  decoder_.prefill(rows_of(0));
  ++on_their_way_;
  deliver();
}

// Whether the next step can be issued before the host knows what the last one chose.
bool ContinuousBatcher::may_go_further() const {
  if (on_their_way_ != 1) return false;
  if (!waiting_.empty() && can_start(waiting_.front().request)) return false;
  return std::all_of(rows_.begin(), rows_.end(), [](const Text* text) {
    return !text->has_ended && text->request.alternatives == 0 &&
           text->generated() + 1 < text->request.tokens;
  });
}

void ContinuousBatcher::decode() {
  if (on_their_way_ == 0) {
    rows_.clear();
    for (Text& text : running_) rows_.push_back(&text);
    decoder_.decode(rows_of(0));
    ++on_their_way_;
  }
  if (may_go_further()) {
    decoder_.decode_ahead(rows_of(1));
    ++on_their_way_;
  }
  deliver();
}

void ContinuousBatcher::deliver() {
  const std::span<const SampledToken> collected = decoder_.collect();
  const std::vector<SampledToken> chosen(collected.begin(), collected.end());
  --on_their_way_;
  std::vector<float> logits;
  const bool wants_logits = std::any_of(rows_.begin(), rows_.end(), [](const Text* text) {
    return !text->has_ended && text->request.alternatives > 0;
  });
  if (wants_logits) logits = decoder_.logits();
  const auto vocab = static_cast<size_t>(decoder_.vocab());
  for (size_t row = 0; row < rows_.size(); ++row) {
    Text& text = *rows_[row];
    if (text.has_ended) continue;
    TokenEvent event;
    const int32_t id = chosen[row].id;
    event.token = {id, chosen[row].logprob};
    event.has_token = id >= 0 && id != text.request.end;
    if (text.request.alternatives > 0)
      event.alternatives =
          likeliest(std::span(logits).subspan(row * vocab, vocab), text.request.alternatives);
    text.tokens.push_back(id);
    if (id < 0) {
      event.finish = FinishReason::Failed;
    } else if (id == text.request.end) {
      event.finish = FinishReason::End;
    } else if (text.generated() == text.request.tokens) {
      event.finish = FinishReason::Length;
    }
    text.has_ended = event.finish != FinishReason::None;
    text.sink(event);
  }
}

void ContinuousBatcher::remove_ended() {
  for (auto text = running_.begin(); text != running_.end();) {
    if (!text->has_ended) {
      ++text;
      continue;
    }
    for (const auto* pages : {&text->source_pages, &text->pages})
      free_pages_.insert(free_pages_.end(), pages->rbegin(), pages->rend());
    text = running_.erase(text);
  }
  rows_.clear();
}

void ContinuousBatcher::step() {
  BEV_CHECK(!is_idle(), Internal, "a step without texts");
  is_stepping_ = true;
  std::vector<Text*> starting;
  const bool nobody_runs = running_.empty();
  if (on_their_way_ == 0 && (!started_ || nobody_runs)) starting = take_waiting();
  started_ = !starting.empty();
  if (started_) {
    start(starting);
  } else {
    decode();
  }
  is_stepping_ = false;
  if (on_their_way_ == 0) remove_ended();
}

}  // namespace bev
