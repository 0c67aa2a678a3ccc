#include "app/generate/mask_filling.h"

#include <algorithm>
#include <array>
#include <optional>

#include "app/cli/progress_line.h"
#include "app/cli/stdio_files.h"
#include "app/generate/generation_prompts.h"
#include "app/generate/output_formats.h"
#include "base/check.h"
#include "base/json.h"
#include "infer/mask_filler.h"

namespace bev::app {

namespace {

constexpr int64_t kMaskedRows = 32;
constexpr int64_t kUsualCandidates = 5;

void refuse_generation_flags(const FlagValues& flags, const ModelFolder& folder) {
  for (const std::string_view flag :
       {"--prompt-ids", "--interactive",    "--samples",        "--num-samples",
        "--tokens",     "--out-seq-length", "--greedy",         "--temperature",
        "--top-p",      "--top_p",          "--min-p",          "--repetition-penalty",
        "--seed",       "--stop",           "--ignore-eod",     "--context",
        "--logprobs",   "--beam",           "--length-penalty", "--stats"})
    BEV_CHECK(!flags.has(flag), Usage,
              "{} has no effect on {}, which holds a BERT: it fills the masks of a prompt; use "
              "--prompt, --prompt-file, --sample-input-file, --top-k N (words of each mask), "
              "--json, --batch",
              flag, folder.weights.string());
}

// The input of a prompt. Usage error if it has no mask or is too long.
EncoderInput masked_input_of(const Prompt& prompt, BertText& text, int64_t length) {
  EncoderInput input = masked_input(text, text.tokens(prompt.text));
  const std::string mask = text.token_name(text.mask());
  BEV_CHECK(
      !input.marked.empty(), Usage,
      "{} has no {}, and a BERT predicts nothing else; example: --prompt \"Paris is the {} of "
      "France.\"",
      prompt.name, mask, mask);
  BEV_CHECK(std::ssize(input.ids) <= length, Usage,
            "{} has {} tokens, more than the context length of {}", prompt.name, input.ids.size(),
            length);
  return input;
}

std::string masks_as_json(const Prompt& prompt, const FilledText& filled, const BertText& text) {
  Json masks = Json::array();
  for (const FilledMask& mask : filled) {
    Json candidates = Json::array();
    for (const MaskCandidate& each : mask.candidates)
      candidates.push_back({{"token", text.token_name(each.id)},
                            {"id", each.id},
                            {"probability", each.probability}});
    masks.push_back({{"position", mask.position}, {"candidates", candidates}});
  }
  const Json json{{"prompt", prompt.text}, {"masks", masks}};
  // A prompt can hold any bytes; what is not UTF-8 is replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string masks_as_table(const Prompt& prompt, const FilledText& filled, const BertText& text) {
  std::string table = prompt.text + "\n";
  for (size_t i = 0; i < filled.size(); ++i) {
    if (filled.size() > 1) table += format("mask {} of {}\n", i + 1, filled.size());
    for (const MaskCandidate& each : filled[i].candidates)
      table += format("  {:.6f}  {}\n", each.probability, text.token_name(each.id));
  }
  return table;
}

}  // namespace

void generate_masked(const FlagValues& flags, InferenceRanks& ranks, const ModelFolder& folder) {
  refuse_generation_flags(flags, folder);
  require_lm_head(folder);
  const std::string path = result_path(flags);
  const bool is_json = flags.has("--json") || flags.has("--genfile");
  const std::string_view top_flag = given_name(flags, kTopKFlag.name, kMegatronTopKFlag.name);
  const int64_t top = flags.integer(top_flag, kUsualCandidates, 1, folder.config.model.vocab);
  BertText text(folder);
  const int64_t most = longest_sequence(folder, 1 << 28);
  const std::optional<std::vector<Prompt>> named = named_prompts(flags);
  std::vector<EncoderInput> inputs;
  int64_t longest = most;
  if (named) {
    longest = 0;
    for (const Prompt& prompt : *named) {
      inputs.push_back(masked_input_of(prompt, text, most));
      longest = std::max(longest, std::ssize(inputs.back().ids));
    }
  }
  const int64_t rows = std::min(std::max<int64_t>(1, std::ssize(inputs)),
                                flags.integer("--batch", kMaskedRows, 1, 65536));
  const InferenceSetup use = ranks.use_of(folder, rows, longest);
  ranks.run(folder, use, [&](const RankContext& place) {
    std::vector<Prompt> prompts = named.value_or(std::vector<Prompt>{});
    std::vector<EncoderInput> own = inputs;
    if (!named) {
      // Only the first rank has what comes through stdin.
      prompts = {piped_prompt(place)};
      BertText own_text(folder);
      own = {masked_input_of(prompts.front(), own_text, most)};
    }
    std::optional<ResultFile> results;
    if (place.is_first) results.emplace(path);
    LoadedModel model(folder, use, place.device, place.world);
    EncoderPass pass(model);
    std::optional<ProgressLine> progress;
    if (place.is_first && own.size() > 1) progress.emplace("filling", std::ssize(own), "texts");
    const std::vector<FilledText> filled = fill_masks(pass, own, top, [&](int64_t done) {
      if (progress) progress->update(done);
    });
    progress.reset();
    if (!place.is_first) return;
    for (size_t i = 0; i < filled.size(); ++i)
      results->write(is_json ? masks_as_json(prompts[i], filled[i], text)
                             : masks_as_table(prompts[i], filled[i], text));
  });
}

}  // namespace bev::app
