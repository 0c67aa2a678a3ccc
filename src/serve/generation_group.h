// The texts of one request while they are made: from the thread of the model to that of the server,
// from tokens to text.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "infer/generation_service.h"
#include "infer/text_streamer.h"
#include "serve/api_error.h"

namespace bev {

// Calls it in the thread of the server, soon. From any thread.
using PostCall = std::function<void(std::function<void()>)>;

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
  std::string piece{};                // may lack what the tokens so far say: see TextStream
  bool is_end = false;                // the last one of this text
  bool is_cut = false;                // a stop string ended it, which is no part of the text
  std::string_view reason{};          // then: "stop" or "length"; empty: the model failed
};

// Lives in the thread of the server. Destroying it cancels what is not done.
class TextGroup {
 public:
  using Listener = std::function<void(const TextUpdate& update)>;

  // The listener hears each text's updates in their order, in the thread of the server, never
  // before the first call of that thread's after submit().
  TextGroup(GenerationService& service, const Tokenizer& tokenizer, PostCall post,
            Listener listener);
  ~TextGroup();
  TextGroup(const TextGroup&) = delete;
  TextGroup& operator=(const TextGroup&) = delete;

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
    TextGroup* group = nullptr;  // of the server's thread; null when it is gone
  };
  struct Text {
    std::unique_ptr<GenerationService::Ticket> ticket{};
    TextStream stream;
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

}  // namespace bev
