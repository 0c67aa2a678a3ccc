// Requests to texts: what a batcher makes token by token, put together.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/cli_flags.h"
#include "infer/beam_search.h"
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

// "37 tokens in 0.52 s: 71.1 tokens/s; the first after 0.031 s"
std::string rate_text(const GenerationTotals& totals);

// Numerics error when the model gives no token a finite probability. REQUIRES: the batcher is idle
// and takes each request; `tokenizer` may be null where there are no stops.
GenerationTotals generate_texts(ContinuousBatcher& batcher, const Tokenizer* tokenizer,
                                const std::vector<std::string>& stops,
                                const std::vector<GenerationRequest>& requests,
                                const GenerationListener& listener);

// Texts that a beam search finds, as those that are drawn.

inline constexpr VerbFlag kBeamFlag{
    "--beam", "N",
    "search for the likeliest text, following N at a time; --samples M: the M best of N"};
inline constexpr VerbFlag kLengthPenaltyFlag{
    "--length-penalty", "X",
    "of that search: a text's score is its log-probability / tokens^X [default: 1]"};

// What the flags ask for; nothing where no search is asked for. Usage error for flags that have no
// meaning in a search. REQUIRES: the verb has both flags, and those of generation_settings.h.
std::optional<BeamOptions> beam_options(const FlagValues& flags, int64_t samples);

// The best continuations of a request, best first, each up to its first stop string.
// `tokenizer` may be null where there are no stops. REQUIRES: as beam_search().
std::vector<GeneratedText> beam_texts(InferenceEngine& decoder, const Tokenizer* tokenizer,
                                      const std::vector<std::string>& stops,
                                      const GenerationRequest& request, BeamOptions options);

}  // namespace bev::app
