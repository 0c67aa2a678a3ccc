// bevatron generate: let a trained model continue prompts, or fill their masks.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/progress_line.h"
#include "app/cli/shared_flags.h"
#include "app/cli/stdio_files.h"
#include "app/cli/verbs.h"
#include "app/generate/generation_prompts.h"
#include "app/generate/generation_settings.h"
#include "app/generate/interactive_generation.h"
#include "app/generate/mask_filling.h"
#include "app/generate/output_formats.h"
#include "app/generate/text_generation.h"
#include "app/launch/inference_ranks.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "config/tokenizer_config.h"

namespace bev::app {

namespace {

constexpr int64_t kUsualRows = 32;
// People think before they type; the other ranks wait.
constexpr double kPatientMinutes = 60.0 * 24 * 365;

constexpr std::array kGenerateFlags{
    kPromptFlag,
    kPromptFileFlag,
    kPromptIdsFlag,
    VerbFlag{"--interactive", "", "read prompts from the terminal or a pipe, one in each line"},
    VerbFlag{"--samples", "N", "continuations of each prompt [default: 1]"},
    VerbFlag{"--num-samples", "N", "Megatron's name of --samples"},
    kTokensFlag,
    kMegatronTokensFlag,
    kGreedyFlag,
    kTemperatureFlag,
    kTopKFlag,
    kTopPFlag,
    kMegatronTopKFlag,
    kMegatronTopPFlag,
    kMinPFlag,
    kRepetitionFlag,
    kSeedFlag,
    kStopFlag,
    kIgnoreEodFlag,
    kContextFlag,
    kSampleInputFlag,
    VerbFlag{"--sample-output-file", "FILE",
             "where the continuations of those lines go, as Megatron writes them "
             "[default: that name and .out]"},
    VerbFlag{"--genfile", "FILE", "where texts go as JSON, one in each line"},
    VerbFlag{"--json", "", "print a JSON object for each text, one in each line"},
    kLogprobsFlag,
    kBeamFlag,
    kLengthPenaltyFlag,
    VerbFlag{"--batch", "N", "texts made at a time [default: all, up to 32]"},
    VerbFlag{"--stats", "", "say how fast it was, on stderr [default: when that is a terminal]"},
    kTensorFlag,
    kPipelineFlag,
    kMegatronTensorFlag,
    kMegatronPipelineFlag,
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
};

constexpr VerbSpec kGenerateVerb{
    .name = "generate",
    .summary =
        "Continues prompts with a trained model; a T5 answers them; a "
        "BERT fills their masks: --prompt \"Paris is the [MASK] of France.\" prints the five most "
        "likely words (--top-k N). DIR is the folder of a "
        "`bevatron train`, one of its checkpoints or a Hugging Face model. A single text appears "
        "as it is made; several appear in their order, each when it is whole. docs/generation.md "
        "has examples.",
    .flags = kGenerateFlags,
    .positional = "DIR",
    .min_positional = 1,
    .max_positional = 1};

class Generation {
 public:
  Generation(const FlagValues& flags, InferenceRanks& ranks, ModelFolder folder)
      : flags_(flags),
        ranks_(ranks),
        folder_(std::move(folder)),
        settings_(generation_settings(flags, folder_)),
        samples_(flags.integer(given_name(flags, "--samples", "--num-samples"), 1, 1, 1 << 20)),
        beam_(beam_options(flags, samples_)) {
    if (!flags.has("--prompt-ids")) tokenizer_ = tokenizer_of(folder_.config);
    BEV_CHECK(tokenizer_ != nullptr || settings_.stops.empty(), Usage, "--stop needs text, but {}",
              flags.has("--prompt-ids") ? "--prompt-ids makes ids" : why_no_tokenizer(folder_));
  }

  void run() {
    if (flags_.has("--interactive")) {
      run_interactively();
    } else {
      run_prompts();
    }
  }

 private:
  // Tokens of the longest text that the model reads at once.
  int64_t model_length() const {
    return settings_.source ? settings_.source->longest : settings_.context;
  }

  bool shows_rate() const { return flags_.has("--stats") || stderr_is_terminal(); }

  void run_interactively() {
    for (const std::string_view other :
         {"--prompt", "--prompt-file", "--prompt-ids", "--sample-input-file", "--samples",
          "--num-samples", "--genfile", "--json", "--logprobs", "--batch", "--beam"})
      flags_.require_not_both("--interactive", other);
    BEV_CHECK(tokenizer_ != nullptr, Usage,
              "--interactive needs text, but {}; --prompt-ids takes token ids",
              why_no_tokenizer(folder_));
    InferenceSetup use = ranks_.use_of(folder_, 1, model_length());
    use.parallel.timeout_minutes = kPatientMinutes;
    Interrupt interrupt;
    ranks_.run(folder_, use, [&](const RankContext& place) {
      LoadedModel model(folder_, use, place.device, place.world);
      InferenceEngine decoder(model, {.rows = 1,
                                      .length = settings_.context,
                                      .source = settings_.source ? settings_.source->longest : 0});
      ContinuousBatcher batcher(decoder);
      const std::unique_ptr<Tokenizer> tokenizer = tokenizer_->clone();
      InteractiveGeneration({.batcher = batcher,
                             .folder = folder_,
                             .tokenizer = *tokenizer,
                             .world = place.world,
                             .interrupt = interrupt,
                             .shows_rate = shows_rate()},
                            settings_)
          .run();
    });
  }

  void run_prompts() {
    path_ = result_path(flags_);
    std::optional<std::vector<Prompt>> prompts = named_prompts(flags_);
    if (flags_.has("--prompt-ids"))
      prompts = {ids_prompt(flags_, folder_)};
    else if (prompts)
      for (Prompt& prompt : *prompts) encode_prompt(prompt, folder_, tokenizer_.get());
    if (prompts) requests_for(*prompts);
    const int64_t texts = samples_ * (prompts ? std::ssize(*prompts) : 1);
    flags_.require_not_both("--beam", "--batch");
    const int64_t rows =
        beam_ ? beam_->beams : std::min(texts, flags_.integer("--batch", kUsualRows, 1, 65536));
    const InferenceSetup use = ranks_.use_of(folder_, rows, model_length());
    ranks_.run(folder_, use, [&](const RankContext& place) {
      make_texts(prompts ? *prompts : std::vector<Prompt>{encoded_piped_prompt(place)}, rows, use,
                 place);
    });
  }

  Prompt encoded_piped_prompt(const RankContext& place) {
    Prompt prompt = piped_prompt(place);
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_ ? tokenizer_->clone() : nullptr;
    encode_prompt(prompt, folder_, tokenizer.get());
    return prompt;
  }

  // All continuations of a prompt one after the other.
  std::vector<GenerationRequest> requests_for(const std::vector<Prompt>& prompts) const {
    std::vector<GenerationRequest> requests;
    for (const Prompt& prompt : prompts)
      for (int64_t i = 0; i < samples_; ++i)
        requests.push_back(request_for(prompt, settings_, std::ssize(requests)));
    return requests;
  }

  std::string form(const Prompt& prompt, const GeneratedText& text) const {
    if (flags_.has("--json") || flags_.has("--genfile"))
      return as_json_line(prompt, text, settings_.logprobs);
    if (settings_.logprobs) return as_token_table(prompt, text, tokenizer_.get());
    if (flags_.has("--sample-input-file")) return as_megatron_sample(prompt, text);
    return as_line(prompt, text);
  }

  void make_texts(const std::vector<Prompt>& prompts, int64_t rows, const InferenceSetup& use,
                  const RankContext& place) const {
    const std::vector<GenerationRequest> requests = requests_for(prompts);
    std::optional<ResultFile> results;
    if (place.is_first) results.emplace(path_);
    LoadedModel model(folder_, use, place.device, place.world);
    EngineLimits limits{.rows = rows};
    for (const GenerationRequest& request : requests) {
      limits.length = std::max(limits.length, std::ssize(request.prompt) + request.tokens);
      limits.source = std::max(limits.source, std::ssize(request.source.ids));
    }
    InferenceEngine decoder(model, limits);

    GenerationListener listener;
    std::optional<ProgressLine> progress;
    int64_t done = 0;
    if (place.is_first && streams(requests.size())) {
      results->write(prompts.front().begun());
      listener.on_piece = [&](std::string_view piece) { results->write(piece); };
      listener.on_text = [&](size_t, const GeneratedText&) { results->write("\n"); };
    } else if (place.is_first) {
      const bool is_seen = results->is_stdout() && ::isatty(STDOUT_FILENO) == 1;
      if (requests.size() > 1 && !is_seen)
        progress.emplace("generating", std::ssize(requests), "texts");
      listener.on_text = [&](size_t number, const GeneratedText& text) {
        results->write(form(prompts[number / static_cast<size_t>(samples_)], text));
        ++done;
      };
      listener.on_step = [&](int64_t tokens) {
        if (!progress) return;
        progress->update(done, [&] {
          return format(", {:.0f} tokens/s", static_cast<double>(tokens) / progress->seconds());
        });
      };
    }
    if (beam_) {
      search_texts(decoder, requests, listener);
      return;
    }
    ContinuousBatcher batcher(decoder);
    const GenerationTotals totals =
        generate_texts(batcher, tokenizer_.get(), settings_.stops, requests, listener);
    progress.reset();
    if (place.is_first && shows_rate()) print_stderr("{}\n", rate_text(totals));
  }

  // Whether the only text appears as it is made.
  bool streams(size_t texts) const {
    return texts == 1 && !beam_ && path_.empty() && !flags_.has("--json") && !settings_.logprobs;
  }

  void search_texts(InferenceEngine& decoder, const std::vector<GenerationRequest>& requests,
                    const GenerationListener& listener) const {
    const auto wanted = static_cast<size_t>(samples_);
    int64_t tokens = 0;
    for (size_t first = 0; first < requests.size(); first += wanted) {
      const std::vector<GeneratedText> found =
          beam_texts(decoder, tokenizer_.get(), settings_.stops, requests[first], *beam_);
      for (size_t i = 0; i < std::min(wanted, found.size()); ++i) {
        tokens += std::ssize(found[i].tokens);
        if (listener.on_text) listener.on_text(first + i, found[i]);
        if (listener.on_step) listener.on_step(tokens);
      }
    }
  }

  const FlagValues& flags_;
  InferenceRanks& ranks_;
  ModelFolder folder_;
  GenerationSettings settings_;
  int64_t samples_;
  std::optional<BeamOptions> beam_;
  std::string path_;                      // of results; empty: stdout
  std::unique_ptr<Tokenizer> tokenizer_;  // null: ids instead of text
};

}  // namespace

int generate(std::span<const std::string> args) {
  return run_inference_verb(kGenerateVerb, args,
                            [](const FlagValues& flags, InferenceRanks& ranks) {
                              ModelFolder folder = open_model_folder(flags.positional().front());
                              if (ranks.prints())
                                for (const std::string& line : folder.passed_over)
                                  print_stderr("note: {}\n", line);
                              if (folder.is_bert()) return generate_masked(flags, ranks, folder);
                              require_generative(folder, "generate");
                              Generation(flags, ranks, std::move(folder)).run();
                            });
}

}  // namespace bev::app
