#include "app/generate/text_generation.h"

#include <memory>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "infer/text_streamer.h"

namespace bev::app {

namespace {

// All texts of one call, and how far they are.
class Work {
 public:
  Work(Batcher& batcher, const Tokenizer* tokenizer, const std::vector<std::string>& stops,
       const std::vector<GenerationRequest>& requests, const GenerationListener& listener)
      : batcher_(batcher),
        tokenizer_(tokenizer),
        stops_(stops),
        requests_(requests),
        listener_(listener),
        texts_(requests.size()),
        start_(seconds_now()) {
    for (size_t i = 0; i < requests.size(); ++i) {
      totals_.prompt_tokens += std::ssize(requests[i].prompt);
      texts_[i].number =
          batcher.submit(requests[i], [this, i](const TokenEvent& event) { take(i, event); });
    }
    totals_.texts = std::ssize(requests);
  }

  GenerationTotals run() {
    while (!batcher_.is_idle()) {
      batcher_.step();
      if (listener_.on_step) listener_.on_step(totals_.tokens);
      if (listener_.goes_on && !listener_.goes_on()) {
        interrupt();
        break;
      }
    }
    totals_.seconds = seconds_now() - start_;
    return totals_;
  }

 private:
  struct Text {
    int64_t number = 0;
    std::optional<TextStream> stream{};  // from the first token on
    GeneratedText made{};
    bool has_ended = false;
  };

  void take(size_t index, const TokenEvent& event) {
    Text& text = texts_[index];
    if (tokenizer_ != nullptr && !text.stream)
      text.stream.emplace(*tokenizer_, stops_, requests_[index].prompt);
    BEV_CHECK(event.finish != Finish::Failed, Numerics,
              "the model gives no token behind {} others a finite probability: its weights or what "
              "it computes from them are not finite",
              text.made.tokens.size());
    if (!event.prompt.empty()) text.made.prompt = event.prompt;
    bool is_stopped = false;
    if (event.has_token) {
      if (totals_.tokens++ == 0) totals_.first_seconds = seconds_now() - start_;
      text.made.tokens.push_back(event.token);
      is_stopped = add(text, event.token.id);
    }
    if (is_stopped) {
      batcher_.cancel(text.number);
      end(text, TextEnd::Stop);
    } else if (event.finish != Finish::None) {
      end(text, event.finish == Finish::End ? TextEnd::End : TextEnd::Length);
    }
  }

  // Whether a stop string was found.
  bool add(Text& text, int32_t id) {
    if (!text.stream) {
      give(text, format("{}{}", text.made.tokens.size() > 1 ? " " : "", id));
      return false;
    }
    const TextStream::Piece piece = text.stream->add(id);
    give(text, piece.text);
    return piece.stopped;
  }

  void give(Text& text, std::string_view piece) {
    text.made.text += piece;
    if (texts_.size() == 1 && listener_.on_piece && !piece.empty()) listener_.on_piece(piece);
  }

  void end(Text& text, TextEnd why) {
    if (text.stream) give(text, text.stream->finish());
    text.made.end = why;
    text.has_ended = true;
    for (; told_ < texts_.size() && texts_[told_].has_ended; ++told_) {
      if (listener_.on_text) listener_.on_text(told_, texts_[told_].made);
      texts_[told_] = {.has_ended = true};
    }
  }

  void interrupt() {
    for (Text& text : texts_) {
      if (text.has_ended) continue;
      batcher_.cancel(text.number);
      end(text, TextEnd::Interrupted);
    }
    while (!batcher_.is_idle()) batcher_.step();
  }

  Batcher& batcher_;
  const Tokenizer* tokenizer_;
  const std::vector<std::string>& stops_;
  const std::vector<GenerationRequest>& requests_;
  const GenerationListener& listener_;
  std::vector<Text> texts_;
  size_t told_ = 0;
  double start_;
  GenerationTotals totals_;
};

}  // namespace

GenerationTotals generate_texts(Batcher& batcher, const Tokenizer* tokenizer,
                                const std::vector<std::string>& stops,
                                const std::vector<GenerationRequest>& requests,
                                const GenerationListener& listener) {
  return Work(batcher, tokenizer, stops, requests, listener).run();
}

}  // namespace bev::app
