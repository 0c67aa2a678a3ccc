// A service without a model: texts count upwards through the alphabet, when the test says so.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "infer/generation_service.h"

namespace bev::test {

class FakeService final : public GenerationService {
 public:
  // The k-th token of a text is the byte 'a' + k, unless `script` says another.
  std::vector<int32_t> script{};
  double logprob = -0.5;
  std::atomic<int64_t> most_open{1 << 20};
  std::atomic<bool> is_automatic{true};  // texts are made whole as soon as they are submitted

  Answer submit(GenerationRequest request, TokenSink sink, uint64_t group) override {
    const std::shared_ptr<Open> added = std::make_shared<Open>();
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back(request);
      groups_.push_back(group);
      if (!failure_.empty()) return {.ticket = {}, .refusal = failure_};
      if (static_cast<int64_t>(open_.size()) >= most_open)
        return {.ticket = {}, .refusal = "too many texts wait", .is_full = true};
      added->request = std::move(request);
      added->sink = std::move(sink);
      open_[added.get()] = added;
    }
    while (is_automatic && step(*added)) {
    }
    return {.ticket = std::make_unique<FakeTicket>(*this, added)};
  }

  Answer search(std::vector<int32_t> prompt, SourceText source, const BeamOptions& options,
                BeamSink sink, uint64_t) override {
    if (options.beams > 4) return {.ticket = {}, .refusal = "too many beams"};
    const std::lock_guard lock(mutex_);
    GenerationRequest like;
    like.prompt = std::move(prompt);
    like.source = std::move(source);
    like.tokens = options.tokens;
    seen_.push_back(like);
    std::vector<Beam> beams;
    for (int64_t i = 0; i < options.beams; ++i)
      beams.push_back(
          {.ids = {static_cast<int32_t>('a' + i), '!'}, .score = -1.0 - static_cast<double>(i)});
    sink(failure_.empty() ? &beams : nullptr);
    return {.ticket = std::make_unique<FakeTicket>(*this, std::make_shared<Open>())};
  }

  // One more token of every open text.
  void step() {
    std::vector<std::shared_ptr<Open>> all;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [key, each] : open_) all.push_back(each);
    }
    for (const std::shared_ptr<Open>& each : all) step(*each);
  }
  // One more token of always the same open text.
  void step_one() {
    std::shared_ptr<Open> first;
    {
      const std::lock_guard lock(mutex_);
      if (!open_.empty()) first = open_.begin()->second;
    }
    if (first != nullptr) step(*first);
  }
  void fail(const std::string& why) {
    std::map<Open*, std::shared_ptr<Open>> all;
    {
      const std::lock_guard lock(mutex_);
      failure_ = why;
      all.swap(open_);
    }
    for (const auto& [key, each] : all) {
      const std::lock_guard calling(each->mutex);
      if (!each->is_closed) each->sink({.finish = FinishReason::Failed});
      each->is_closed = true;
    }
  }

  size_t open() const {
    const std::lock_guard lock(mutex_);
    return open_.size();
  }
  std::vector<GenerationRequest> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  std::vector<uint64_t> groups() const {
    const std::lock_guard lock(mutex_);
    return groups_;
  }

  ServiceCounts counts() const override {
    const std::lock_guard lock(mutex_);
    ServiceCounts counts;
    counts.running = static_cast<int64_t>(open_.size());
    counts.cancelled = cancelled_;
    counts.steps = steps_;
    counts.generated_tokens = steps_;
    return counts;
  }
  std::string failure() const override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  bool drain(double) override { return true; }

 private:
  struct Open {
    std::mutex mutex{};
    GenerationRequest request{};
    TokenSink sink{};
    int64_t made = 0;
    bool is_closed = false;
  };
  class FakeTicket final : public Ticket {
   public:
    FakeTicket(FakeService& service, std::shared_ptr<Open> open)
        : service_(service), open_(std::move(open)) {}
    ~FakeTicket() override {
      {
        const std::lock_guard closing(open_->mutex);
        open_->is_closed = true;
      }
      const std::lock_guard lock(service_.mutex_);
      service_.cancelled_ += static_cast<int64_t>(service_.open_.erase(open_.get()));
    }

   private:
    FakeService& service_;
    std::shared_ptr<Open> open_;
  };

  // Whether there is more to come.
  bool step(Open& text) {
    bool has_ended = false;
    {
      const std::lock_guard calling(text.mutex);
      if (text.is_closed) return false;
      TokenEvent event;
      if (text.made == 0 && text.request.score_prompt)
        for (size_t i = 1; i < text.request.prompt.size(); ++i)
          event.prompt.push_back({text.request.prompt[i], -1});
      if (text.request.tokens > 0) {
        const auto k = static_cast<size_t>(text.made++);
        const int32_t id = k < script.size() ? script[k] : static_cast<int32_t>('a' + k % 26);
        event.token = {id, logprob};
        event.has_token = id != text.request.end;
        if (id == text.request.end) event.finish = FinishReason::End;
        for (int32_t i = 0; i < text.request.alternatives; ++i)
          event.alternatives.push_back({'A' + i, -1.0 - i});
      }
      if (event.finish == FinishReason::None && text.made >= text.request.tokens)
        event.finish = FinishReason::Length;
      has_ended = event.finish != FinishReason::None;
      text.is_closed = has_ended;
      text.sink(event);
    }
    const std::lock_guard lock(mutex_);
    ++steps_;
    if (has_ended) open_.erase(&text);
    return !has_ended;
  }

  mutable std::mutex mutex_;
  std::map<Open*, std::shared_ptr<Open>> open_;
  std::vector<GenerationRequest> seen_;
  std::vector<uint64_t> groups_;
  std::string failure_;
  int64_t cancelled_ = 0, steps_ = 0;
};

}  // namespace bev::test
