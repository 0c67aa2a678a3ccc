// Generation for one HTTP request: groups of sequences, their tokens as text, time limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/encoder_service.h"
#include "infer/generation_service.h"
#include "infer/source_text.h"
#include "infer/text_streamer.h"
#include "serve/http/http_message.h"
#include "serve/request_fields.h"
#include "text/tokenizer.h"

namespace bev {

struct ServedModel {
  std::string name{};
  int64_t created = 0;  // seconds since 1970
  // Null for a BERT.
  Tokenizer* tokenizer = nullptr;  // used by the thread of the server alone
  GenerationService* service = nullptr;
  // Null for a causal language model.
  BertText* bert = nullptr;  // used by the thread of the server alone
  EncoderService* encoder = nullptr;
  bool has_lm_head = true;
  int32_t end = -1;                      // the id that ends a document; -1: none
  int32_t begin = -1;                    // the id that begins a text; -1: none
  std::optional<SourceFormat> source{};  // of a T5
  RequestLimits limits{};

  const ModelService& monitored() const {
    return encoder != nullptr ? static_cast<const ModelService&>(*encoder) : *service;
  }
};

// Work that has to end.

class TimedJob;

// Of the thread of the server.
struct WorkClock {
  std::chrono::milliseconds limit{0};  // of one request
  std::set<TimedJob*> open{};

  // Tells those whose time is over.
  void tick();
};

class TimedJob : public HttpJob {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit TimedJob(WorkClock& clock) : clock_(clock) { clock_.open.insert(this); }
  ~TimedJob() override { clock_.open.erase(this); }

  // Ends the answer. Called once.
  virtual void expire() = 0;

 private:
  friend struct WorkClock;
  WorkClock& clock_;
  Time deadline_ = std::chrono::steady_clock::now() + clock_.limit;
};

inline void WorkClock::tick() {
  const auto now = std::chrono::steady_clock::now();
  const std::set<TimedJob*> all = open;
  for (TimedJob* work : all) {
    if (now < work->deadline_) continue;
    open.erase(work);
    work->expire();
  }
}

// The texts of one request while they are made: from the thread of the model to that of the server,
// from tokens to text.

// Calls it in the thread of the server, soon. From any thread.
using PostCall = std::function<void(std::function<void()>)>;

// Appends the ids of a prompt that the encoder of a T5 reads. Returns what is wrong with it, in a
// sentence. REQUIRES: model.source.
std::string encode_source(const ServedModel& model, const RequestPrompt& prompt,
                          std::vector<int32_t>& ids);

// What a refused request is told. REQUIRES: it was refused.
ApiError error_of(const GenerationService::Answer& answer, const GenerationService& service);

struct WantedText {
  GenerationRequest request{};
  std::vector<std::string> stops{};
};

// Something new of one text.
struct TextUpdate {
  size_t text = 0;                    // its number
  const TokenEvent* event = nullptr;  // never null
  bool has_token = false;             // the event has one, and it is not the one that ends the text
  std::string piece{};                // may lack what the tokens so far say: see TextStreamer
  bool is_end = false;                // the last one of this text
  bool is_cut = false;                // a stop string ended it, which is no part of the text
  std::string_view reason{};          // then: "stop" or "length"; empty: the model failed
};

// Lives in the thread of the server. Destroying it cancels what is not done.
class GenerationGroup {
 public:
  using Listener = std::function<void(const TextUpdate& update)>;

  // The listener hears each text's updates in their order, in the thread of the server, never
  // before the first call of that thread's after submit().
  GenerationGroup(GenerationService& service, const Tokenizer& tokenizer, PostCall post,
                  Listener listener);
  ~GenerationGroup();
  GenerationGroup(const GenerationGroup&) = delete;
  GenerationGroup& operator=(const GenerationGroup&) = delete;

  // All of them or none. Once.
  std::optional<ApiError> submit(std::vector<WantedText> wanted, uint64_t group);

  bool is_done() const { return open_ == 0; }
  int64_t generated() const { return generated_; }  // tokens

 private:
  struct Arrived {
    size_t text;
    TokenEvent event;
  };
  // What the thread of the model leaves for that of the server.
  struct Inbox {
    std::mutex mutex{};
    std::vector<Arrived> arrived{};
    GenerationGroup* group = nullptr;  // of the server's thread; null when it is gone
  };
  struct Text {
    std::unique_ptr<GenerationService::Ticket> ticket{};
    TextStreamer stream;
    int32_t end = -1;
    bool is_open = true;
  };

  void deliver();
  void take(size_t number, const TokenEvent& event);

  GenerationService& service_;
  const Tokenizer& tokenizer_;
  PostCall post_;
  Listener listener_;
  std::shared_ptr<Inbox> inbox_;
  std::vector<Text> texts_;
  size_t open_ = 0;
  int64_t generated_ = 0;
};

// The text of single tokens, for people and for programs.

// What the token adds to a text that ends with the token `before` (-1: to none). A part of a
// character is written as its bytes: "bytes:\xe2\x82".
std::string token_text(const Tokenizer& tokenizer, int32_t before, int32_t id);

// The same of each token of a text.
std::vector<std::string> token_texts(const Tokenizer& tokenizer, std::span<const int32_t> ids);

// How many characters UTF-8 has.
int64_t count_characters(std::string_view text);

}  // namespace bev
