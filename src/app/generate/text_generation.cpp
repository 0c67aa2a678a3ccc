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
  Work(ContinuousBatcher& batcher, const Tokenizer* tokenizer,
       const std::vector<std::string>& stops, const std::vector<GenerationRequest>& requests,
       const GenerationListener& listener)
      : batcher_(batcher),
        tokenizer_(tokenizer),
        stops_(stops),
        requests_(requests),
        listener_(listener),
        texts_(requests.size()),
        start_(seconds_now()) {
    for (size_t i = 0; i < requests.size(); ++i) {
      totals_.prompt_tokens += requests[i].prompt_tokens();
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
    std::optional<TextStreamer> stream{};  // from the first token on
    GeneratedText made{};
    bool has_ended = false;
  };

  void take(size_t index, const TokenEvent& event) {
    Text& text = texts_[index];
    if (tokenizer_ != nullptr && !text.stream)
      text.stream.emplace(*tokenizer_, stops_, requests_[index].prompt,
                          requests_[index].source.shown_specials());
    BEV_CHECK(event.finish != FinishReason::Failed, Numerics,
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
    } else if (event.finish != FinishReason::None) {
      end(text, event.finish == FinishReason::End ? TextEnd::End : TextEnd::Length);
    }
  }

  // Whether a stop string was found.
  bool add(Text& text, int32_t id) {
    if (!text.stream) {
      give(text, format("{}{}", text.made.tokens.size() > 1 ? " " : "", id));
      return false;
    }
    const TextStreamer::Piece piece = text.stream->add(id);
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
    for (; reported_ < texts_.size() && texts_[reported_].has_ended; ++reported_) {
      if (listener_.on_text) listener_.on_text(reported_, texts_[reported_].made);
      texts_[reported_] = {.has_ended = true};
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

  ContinuousBatcher& batcher_;
  const Tokenizer* tokenizer_;
  const std::vector<std::string>& stops_;
  const std::vector<GenerationRequest>& requests_;
  const GenerationListener& listener_;
  std::vector<Text> texts_;
  size_t reported_ = 0;
  double start_;
  GenerationTotals totals_;
};

}  // namespace

std::string rate_text(const GenerationTotals& totals) {
  const double rate = totals.seconds > 0 ? static_cast<double>(totals.tokens) / totals.seconds : 0;
  return format("{} tokens in {:.2f} s: {:.1f} tokens/s; the first after {:.3f} s",
                with_commas(totals.tokens), totals.seconds, rate, totals.first_seconds);
}

GenerationTotals generate_texts(ContinuousBatcher& batcher, const Tokenizer* tokenizer,
                                const std::vector<std::string>& stops,
                                const std::vector<GenerationRequest>& requests,
                                const GenerationListener& listener) {
  return Work(batcher, tokenizer, stops, requests, listener).run();
}

namespace {

GeneratedText text_of(const Beam& beam, const Tokenizer* tokenizer,
                      const std::vector<std::string>& stops, const GenerationRequest& request) {
  GeneratedText made{.end = beam.has_ended ? TextEnd::End : TextEnd::Length,
                     .beam = GeneratedText::BeamScore{beam.logprob, beam.score}};
  for (const int32_t id : beam.ids) made.tokens.push_back({.id = id});
  if (tokenizer == nullptr) {
    made.text = format("{}", fmt::join(beam.ids, " "));
    return made;
  }
  TextStreamer stream(*tokenizer, stops, request.prompt, request.source.shown_specials());
  for (const int32_t id : beam.ids) {
    const TextStreamer::Piece piece = stream.add(id);
    made.text += piece.text;
    if (piece.stopped) made.end = TextEnd::Stop;
  }
  made.text += stream.finish();
  return made;
}

}  // namespace

std::optional<BeamOptions> beam_options(const FlagValues& flags, int64_t samples) {
  flags.require_with("--length-penalty", "--beam");
  if (!flags.has("--beam")) return std::nullopt;
  for (const std::string_view other :
       {"--greedy", "--temperature", "--top-k", "--top_k", "--top-p", "--top_p", "--min-p",
        "--repetition-penalty", "--seed", "--logprobs"})
    flags.require_not_both("--beam", other);
  const BeamOptions options{.beams = flags.integer("--beam", 1, 1, 1024),
                            .length_penalty = flags.real("--length-penalty", 1, -100, 100)};
  BEV_CHECK(samples <= options.beams, Usage,
            "--samples {} asks for more texts than --beam {} finds; legal: up to {}", samples,
            options.beams, options.beams);
  return options;
}

std::vector<GeneratedText> beam_texts(InferenceEngine& decoder, const Tokenizer* tokenizer,
                                      const std::vector<std::string>& stops,
                                      const GenerationRequest& request, BeamOptions options) {
  options.tokens = request.tokens;
  options.end = request.end;
  const std::vector<Beam> beams = beam_search(decoder, request.prompt, request.source, options);
  BEV_CHECK(!beams.empty(), Numerics,
            "the model gives no token behind the prompt a finite probability: its weights or what "
            "it computes from them are not finite");
  std::vector<GeneratedText> texts;
  texts.reserve(beams.size());
  for (const Beam& beam : beams) texts.push_back(text_of(beam, tokenizer, stops, request));
  return texts;
}

}  // namespace bev::app
