#include "app/generate/beam_texts.h"

#include "base/check.h"
#include "infer/text_streamer.h"

namespace bev::app {

namespace {

GeneratedText text_of(const Beam& beam, const Tokenizer* tokenizer,
                      const std::vector<std::string>& stops, std::span<const int32_t> prompt) {
  GeneratedText made{.end = beam.has_ended ? TextEnd::End : TextEnd::Length,
                     .beam = GeneratedText::BeamScore{beam.logprob, beam.score}};
  for (const int32_t id : beam.ids) made.tokens.push_back({.id = id});
  if (tokenizer == nullptr) {
    made.text = format("{}", fmt::join(beam.ids, " "));
    return made;
  }
  TextStream stream(*tokenizer, stops, prompt);
  for (const int32_t id : beam.ids) {
    const TextStream::Piece piece = stream.add(id);
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

std::vector<GeneratedText> beam_texts(Decoder& decoder, const Tokenizer* tokenizer,
                                      const std::vector<std::string>& stops,
                                      const GenerationRequest& request, BeamOptions options) {
  options.tokens = request.tokens;
  options.end = request.end;
  const std::vector<Beam> beams = beam_search(decoder, request.prompt, options);
  BEV_CHECK(!beams.empty(), Numerics,
            "the model gives no token behind the prompt a finite probability: its weights or what "
            "it computes from them are not finite");
  std::vector<GeneratedText> texts;
  for (const Beam& beam : beams) texts.push_back(text_of(beam, tokenizer, stops, request.prompt));
  return texts;
}

}  // namespace bev::app
