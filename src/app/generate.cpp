// bevatron generate: let a trained model continue a prompt.
#include <array>
#include <cstdio>
#include <vector>

#include "app/device_flags.h"
#include "app/terminal.h"
#include "app/verbs.h"
#include "base/check.h"
#include "config/tokenizer_facts.h"
#include "config/value.h"
#include "infer/generation.h"
#include "text/utf8.h"

namespace bev::app {

namespace {

constexpr std::array<OwnFlag, 13> kFlags{{
    {"--prompt", "TEXT", "what to continue; without it the start of a document"},
    {"--prompt-ids", "ID ...", "the same as token ids, for models without a tokenizer here"},
    {"--tokens", "N", "length of a continuation at most [default: 256]"},
    {"--samples", "N", "continuations of the prompt [default: 1]"},
    {"--temperature", "X", "above 1 bolder, below 1 safer, 0 always the likeliest [default: 1]"},
    {"--top-k", "N", "choose among the N likeliest; 0: among all [default: 0]"},
    {"--top-p", "X", "choose among the likeliest that together have this probability [default: 1]"},
    {"--seed", "N", "of the choice [default: 1234]"},
    {"--ignore-eod", "", "go on after the end of a document"},
    {"--context", "N", "tokens the model sees at most [default: as trained]"},
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
}};

// `tokenizer`: null when none is known.
std::vector<int32_t> prompt_ids(const FlagValues& flags, const ModelFolder& folder,
                                Tokenizer* tokenizer) {
  const Config& config = folder.config;
  std::vector<int32_t> ids;
  if (flags.has("--prompt-ids")) {
    for (const std::string& text : flags.texts("--prompt-ids")) {
      const auto id = parse_integer(text);
      BEV_CHECK(id && *id >= 0 && *id < config.model.vocab, Usage,
                "--prompt-ids {}: an id from 0 to {} is wanted", text, config.model.vocab - 1);
      ids.push_back(static_cast<int32_t>(*id));
    }
    return ids;
  }
  BEV_CHECK(tokenizer != nullptr || !flags.has("--prompt"), Usage,
            "--prompt: {}; --prompt-ids takes token ids", why_no_tokenizer(folder));
  // A document begins where another one has ended.
  if (config.data.eod >= 0) ids.push_back(static_cast<int32_t>(config.data.eod));
  if (tokenizer != nullptr) tokenizer->encode(flags.text("--prompt"), ids);
  BEV_CHECK(!ids.empty(), Usage, "there is nothing to continue: --prompt TEXT or --prompt-ids ID");
  return ids;
}

std::string ids_text(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += format("{}{}", text.empty() ? "" : " ", id);
  return text;
}

// Writes what is new of the only continuation, whole characters at a time.
class Stream {
 public:
  void show(std::string_view text, bool all) {
    const std::string_view rest = text.substr(written_);
    const size_t count = all ? rest.size() : complete_utf8(rest);
    std::fwrite(rest.data(), 1, count, stdout);
    std::fflush(stdout);
    written_ += count;
  }

 private:
  size_t written_ = 0;
};

}  // namespace

int generate(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "generate",
       .summary = "Continues a prompt with a trained model. DIR is the folder of a `bevatron "
                  "train`, one of its checkpoints or a Hugging Face model.",
       .flags = kFlags,
       .positional = "DIR",
       .min_positional = 1,
       .max_positional = 1},
      args);
  if (!flags) return 0;
  flags->require_not_both("--prompt", "--prompt-ids");
  const ModelFolder folder = open_model_folder(flags->positional().front());
  for (const std::string& line : folder.passed_over) say("note: {}\n", line);
  const Config& config = folder.config;
  const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(config);
  const std::vector<int32_t> prompt = prompt_ids(*flags, folder, tokenizer.get());

  GenerationOptions options;
  options.samples = flags->integer("--samples", 1, 1, 65536);
  options.tokens = flags->integer("--tokens", 256, 1, 1 << 28);
  options.end = flags->has("--ignore-eod") ? -1 : config.data.eod;
  options.sampling = {.temperature = flags->real("--temperature", 1, 0, 1e6),
                      .top_k = flags->integer("--top-k", 0, 0, 1 << 28),
                      .top_p = flags->real("--top-p", 1, 0, 1),
                      .seed = static_cast<uint64_t>(flags->integer("--seed", 1234, 0, INT64_MAX))};
  const int64_t trained = config.train.sequence > 0 ? config.train.sequence : 1024;
  const int64_t most = static_cast<int64_t>(prompt.size()) + options.tokens;
  options.context = std::min(flags->integer("--context", longest_sequence(folder, trained), 1,
                                            longest_sequence(folder, 1 << 28)),
                             most);

  const DeviceConfig device = device_from_flags(*flags);
  LoadedModel model(folder, device, options.samples, options.context);
  const bool streams = options.samples == 1 && tokenizer && !flags->has("--prompt-ids");
  Stream stream;
  const std::string shown = flags->text("--prompt");
  if (streams) std::fwrite(shown.data(), 1, shown.size(), stdout);
  const std::vector<Continuation> texts =
      generate(model, prompt, options, [&](std::span<const Continuation> so_far) {
        if (streams)
          stream.show(tokenizer->decode(so_far.front().ids, SpecialIds::LeaveOut), false);
        return true;
      });
  if (streams) {
    stream.show(tokenizer->decode(texts.front().ids, SpecialIds::LeaveOut), true);
    fmt::print("\n");
    return 0;
  }
  for (const Continuation& text : texts) {
    if (tokenizer && !flags->has("--prompt-ids"))
      fmt::print("{}{}\n", shown, tokenizer->decode(text.ids, SpecialIds::LeaveOut));
    else
      fmt::print("{}\n", ids_text(text.ids));
  }
  return 0;
}

}  // namespace bev::app
