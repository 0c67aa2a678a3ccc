// Texts that a beam search finds, as those that are drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/cli_flags.h"
#include "app/generate/text_generation.h"
#include "infer/beam_search.h"

namespace bev::app {

inline constexpr OwnFlag kBeamFlag{
    "--beam", "N",
    "search for the likeliest text, following N at a time; --samples M: the M best of N"};
inline constexpr OwnFlag kLengthPenaltyFlag{
    "--length-penalty", "X",
    "of that search: a text's score is its log-probability / tokens^X [default: 1]"};

// What the flags ask for; nothing where no search is asked for. Usage error for flags that have no
// meaning in a search. REQUIRES: the verb has both flags, and those of generation_settings.h.
std::optional<BeamOptions> beam_options(const FlagValues& flags, int64_t samples);

// The best continuations of a request, best first, each up to its first stop string.
// `tokenizer` may be null where there are no stops. REQUIRES: as beam_search().
std::vector<GeneratedText> beam_texts(Decoder& decoder, const Tokenizer* tokenizer,
                                      const std::vector<std::string>& stops,
                                      const GenerationRequest& request, BeamOptions options);

}  // namespace bev::app
