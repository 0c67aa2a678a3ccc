#include "text/huggingface/bert_vocab.h"

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "text/huggingface/token_model.h"
#include "text/utf8.h"

namespace bev {

namespace {

constexpr size_t kBertVocabLimit = size_t{64} << 20;
constexpr size_t kLongestWord = 100, kLongestClassicWord = 200;  // characters

TokenNames read_vocab_lines(NamedText file) {
  TokenNames names;
  std::string_view rest = file.text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t newline = rest.find('\n');
    std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    BEV_CHECK(!line.empty(), Data, "{}:{}: the line is empty; each holds a token", file.name,
              number);
    BEV_CHECK(valid_utf8_prefix(line) == line.size(), Data, "{}:{}: {} is not valid UTF-8",
              file.name, number, in_quotes(line));
    names.add(line, number - 1, file.name, format("line {}", number));
  }
  return names;
}

struct BertTokens {
  int32_t pad, unknown, cls, sep, mask;
};

BertTokens find_tokens(const TokenNames& names, std::string_view file) {
  const auto find = [&](std::string_view name) {
    const std::optional<int32_t> id = names.find(name);
    BEV_CHECK(id, Data, "{}: the token {} is missing; BERT's vocabularies have it", file, name);
    return *id;
  };
  return {find("[PAD]"), find("[UNK]"), find("[CLS]"), find("[SEP]"), find("[MASK]")};
}

// Puts what the settings ask for behind the vocabulary and returns the names of all special tokens.
std::vector<std::string> append_tokens(const BertSettings& settings, std::string_view file,
                                       TokenNames& names) {
  std::vector<std::string> special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  if (settings.classic) special.insert(special.end(), {"[BOS]", "[EOS]"});
  BEV_CHECK(settings.extra_ids >= 0 && settings.extra_ids < TokenNames::kLimit / 2, Usage,
            "{} extra ids behind the vocabulary are not possible", settings.extra_ids);
  for (int64_t i = 0; i < settings.extra_ids; ++i) special.push_back(format("<extra_id_{}>", i));
  for (const std::string& name : special)
    if (!names.find(name)) names.add(name, names.size(), file, "tokens behind the vocabulary");
  return special;
}

TextTemplate template_of(const BertTokens& tokens) {
  using Part = TextTemplate::Part;
  const auto part = [](Part::Kind kind, int32_t type_id, std::vector<int32_t> ids = {}) {
    return Part{.kind = kind, .type_id = type_id, .ids = std::move(ids)};
  };
  TextTemplate around;
  around.single = {part(Part::Kind::Tokens, 0, {tokens.cls}), part(Part::Kind::First, 0),
                   part(Part::Kind::Tokens, 0, {tokens.sep})};
  around.pair = around.single;
  around.pair.push_back(part(Part::Kind::Second, 1));
  around.pair.push_back(part(Part::Kind::Tokens, 1, {tokens.sep}));
  return around;
}

}  // namespace

std::shared_ptr<const TokenizerParts> bert_parts(NamedText vocab, const BertSettings& settings) {
  TokenNames names = read_vocab_lines(vocab);
  const BertTokens tokens = find_tokens(names, vocab.name);
  auto parts = std::make_shared<TokenizerParts>();
  for (const std::string& name : append_tokens(settings, vocab.name, names))
    parts->added.push_back(
        {.id = *names.find(name), .content = name, .special = true, .in_texts = !settings.classic});
  const auto role = [&](TokenRole which) -> std::optional<int32_t>& {
    return parts->roles[static_cast<size_t>(which)];
  };
  role(TokenRole::Unknown) = tokens.unknown;
  role(TokenRole::Pad) = tokens.pad;
  role(TokenRole::Classify) = tokens.cls;
  role(TokenRole::Separate) = tokens.sep;
  role(TokenRole::Mask) = tokens.mask;
  role(TokenRole::Begin) = settings.classic ? names.find("[BOS]") : tokens.cls;
  role(TokenRole::End) = settings.classic ? names.find("[EOS]") : tokens.sep;
  if (!settings.classic) {
    parts->eod = tokens.sep;
    parts->text_template = template_of(tokens);
  }
  parts->normalizers.push_back(
      bert_normalizer({.strip_accents = settings.lower_case, .lower_case = settings.lower_case}));
  parts->steps.push_back(split_for_bert());
  parts->decoders.push_back(wordpiece_decoder("##", true));
  parts->model = std::make_shared<const WordPieceModel>(
      std::move(names), WordPieceModel::Options{
                            .unknown = tokens.unknown,
                            .continuation = "##",
                            .longest_word = settings.classic ? kLongestClassicWord : kLongestWord});
  return parts;
}

std::shared_ptr<const TokenizerParts> read_bert_vocab(const std::filesystem::path& vocab_txt,
                                                      const BertSettings& settings) {
  const std::string name = vocab_txt.string();
  return bert_parts({name, read_text(vocab_txt, kBertVocabLimit)}, settings);
}

}  // namespace bev
