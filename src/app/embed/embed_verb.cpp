// bevatron embed: one vector for each text, by a BERT.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/progress_line.h"
#include "app/cli/shared_flags.h"
#include "app/cli/stdio_files.h"
#include "app/cli/verbs.h"
#include "app/embed/embedding_files.h"
#include "app/launch/inference_ranks.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "infer/text_embedding.h"

namespace bev::app {

namespace {

constexpr std::array kEmbedFlags{
    VerbFlag{"--text", "FILE", "a sequence in each line ('-': stdin)"},
    VerbFlag{"--output", "FILE",
             "FILE.npy or FILE.safetensors (tensor \"embeddings\"): an array [lines, width] of "
             "float32; any other name: lines of JSON [default: those, on stdout]"},
    VerbFlag{"--pooling", "NAME",
             "mean: over all tokens of a text, [CLS] and [SEP] included; cls: the state of [CLS] "
             "[default: mean]"},
    VerbFlag{"--length", "N",
             "tokens of a text at most, [CLS] and [SEP] included; what is beyond is left out and "
             "counted [default: the model's positions]"},
    VerbFlag{"--batch", "N", "sequences of a batch [default: 32]"},
    kTensorFlag,
    kPipelineFlag,
    kMegatronTensorFlag,
    kMegatronPipelineFlag,
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
};

constexpr VerbSpec kEmbedVerb{
    .name = "embed",
    .summary =
        "Writes an embedding of each line of a text: the last hidden states of a BERT, pooled to "
        "one vector "
        "by a mean or by [CLS]. DIR is the folder of a `bevatron train`, one of its checkpoints "
        "or a Hugging Face model; a BertModel without heads suffices. docs/generation.md has "
        "examples.",
    .flags = kEmbedFlags,
    .positional = "DIR",
    .min_positional = 1,
    .max_positional = 1};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

struct TextsToEmbed {
  std::vector<std::string> lines;
  std::vector<EncoderInput> inputs;
  std::vector<int64_t> cut;  // tokens left out of each
};

TextsToEmbed encode_texts(std::string_view whole, const std::string& name, BertText& text,
                          int64_t length) {
  TextsToEmbed texts{.lines = lines_of(whole), .inputs = {}, .cut = {}};
  BEV_CHECK(!texts.lines.empty(), Data, "{} is empty; expected a text in each line", name);
  for (const std::string& line : texts.lines) {
    EmbeddingInput input = embedding_input(text, text.tokens(line), length);
    texts.inputs.push_back(std::move(input.input));
    texts.cut.push_back(input.cut);
  }
  return texts;
}

void note_cuts(const TextsToEmbed& texts, int64_t length) {
  int64_t count = 0, tokens = 0;
  for (const int64_t cut : texts.cut) {
    count += cut > 0 ? 1 : 0;
    tokens += cut;
  }
  if (count > 0)
    print_stderr(
        "note: {} of {} lines are longer than {} tokens: the {} tokens beyond are left out\n",
        with_commas(count), with_commas(std::ssize(texts.cut)), length, with_commas(tokens));
}

void write_embeddings(const std::string& path, const TextsToEmbed& texts,
                      const std::vector<std::vector<float>>& vectors) {
  if (path.ends_with(".npy")) return write_npy(path, vectors);
  if (path.ends_with(".safetensors")) return write_embedding_tensor(path, vectors);
  ResultFile results(path);
  for (size_t i = 0; i < vectors.size(); ++i)
    results.write(
        embedding_line(texts.lines[i], std::ssize(texts.inputs[i].ids), texts.cut[i], vectors[i]));
}

void embed_lines(const FlagValues& flags, InferenceRanks& ranks) {
  BEV_CHECK(flags.has("--text"), Usage,
            "missing --text: nothing to embed; use --text FILE, or --text - for stdin");
  const ModelFolder folder = open_model_folder(flags.positional().front());
  if (ranks.prints())
    for (const std::string& line : folder.passed_over) print_stderr("note: {}\n", line);
  BEV_CHECK(folder.is_bert(), Usage,
            "{} holds a causal language model, whose states see only what is before them; "
            "embeddings need a BERT",
            folder.weights.string());
  const auto pooling = static_cast<Pooling>(flags.choice("--pooling", 0, kPoolingNames));
  const int64_t most = longest_sequence(folder, 1 << 28);
  const int64_t length = flags.integer("--length", most, BertText::kAdded, most);
  const std::string path = flags.path("--output"), source = flags.path("--text");
  const InferenceSetup use = ranks.use_of(folder, flags.integer("--batch", 32, 1, 65536), length);
  {
    const BertText checked(folder);
  }
  ranks.run(folder, use, [&](const RankContext& place) {
    // Only the first rank has what comes through stdin.
    const bool is_piped = source == "-";
    std::string whole =
        place.is_first || !is_piped ? std::string(WholeInput(source).text()) : std::string();
    if (is_piped) whole = broadcast_text(place.world, whole, 0);
    BertText text(folder);
    const TextsToEmbed texts = encode_texts(whole, source, text, length);
    if (place.is_first) note_cuts(texts, length);
    LoadedModel model(folder, use, place.device, place.world);
    EncoderPass pass(model);
    std::optional<ProgressLine> progress;
    if (place.is_first && texts.inputs.size() > 1)
      progress.emplace("embedding", std::ssize(texts.inputs), "texts");
    const std::vector<std::vector<float>> vectors =
        embed_texts(pass, texts.inputs, pooling, [&](int64_t done) {
          if (progress) progress->update(done);
        });
    progress.reset();
    if (place.is_first) write_embeddings(path, texts, vectors);
  });
}

}  // namespace

int embed(std::span<const std::string> args) {
  return run_inference_verb(kEmbedVerb, args, [](const FlagValues& flags, InferenceRanks& ranks) {
    embed_lines(flags, ranks);
  });
}

}  // namespace bev::app
