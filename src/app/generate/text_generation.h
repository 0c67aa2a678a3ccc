// Requests to texts: what a batcher makes token by token, put together.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/continuous_batcher.h"
#include "text/tokenizer.h"

namespace bev::app {

// Why a text ended.
enum class TextEnd : uint8_t { End, Length, Stop, Interrupted };
inline constexpr std::array<std::string_view, 4> kTextEndNames{"end", "length", "stop",
                                                               "interrupted"};

struct GeneratedText {
  std::string text{};  // behind the prompt; where there is no tokenizer, ids with blanks between
  std::vector<ScoredToken> tokens{};  // without the one that ended it
  std::vector<ScoredToken> prompt{};  // where asked for, from the second on
  TextEnd end = TextEnd::Interrupted;
  struct BeamScore {
    double logprob = 0, score = 0;
  };
  std::optional<BeamScore> beam{};  // of one that a search found: its tokens have no logprobs
};

struct GenerationListener {
  // More of the only text. Characters are whole.
  std::function<void(std::string_view piece)> on_piece{};
  // A text with its number among the requests, in their order.
  std::function<void(size_t number, const GeneratedText& text)> on_text{};
  // How far all texts are together, often.
  std::function<void(int64_t tokens)> on_step{};
  // Asked after each step; false ends all texts. With several ranks the same on all of them.
  std::function<bool()> goes_on{};
};

struct GenerationTotals {
  int64_t texts = 0, prompt_tokens = 0, tokens = 0;
  double seconds = 0, first_seconds = 0;  // in all; until the first token
};

// Numerics error when the model gives no token a finite probability. REQUIRES: the batcher is idle
// and takes each request; `tokenizer` may be null where there are no stops.
GenerationTotals generate_texts(Batcher& batcher, const Tokenizer* tokenizer,
                                const std::vector<std::string>& stops,
                                const std::vector<GenerationRequest>& requests,
                                const GenerationListener& listener);

}  // namespace bev::app
