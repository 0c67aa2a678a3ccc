#include "app/cli/shared_flags.h"

#include "base/check.h"

namespace bev::app {

namespace {

// Kinds that cannot encode have no name here.
TokenizerKind kind_of(const std::string& name) {
  std::string legal;
  for (size_t i = 0; i < kTokenizerNames.size(); ++i) {
    const auto kind = static_cast<TokenizerKind>(i);
    if (kind == TokenizerKind::None || kind == TokenizerKind::External) continue;
    if (name == kTokenizerNames[i] || (!name.empty() && name == kMegatronTokenizerNames[i]))
      return kind;
    legal += format("{}{}", legal.empty() ? "" : ", ", kTokenizerNames[i]);
  }
  throw Error(ErrorKind::Usage,
              format("--tokenizer-type {}: there is no such tokenizer; legal: {}", name, legal));
}

constexpr std::array<std::string_view, 2> kCompat{"main", "classic"};

}  // namespace

bool names_tokenizer(const FlagValues& flags) {
  return flags.has("--tokenizer-type") || flags.has("--tokenizer");
}

TokenizerSpec tokenizer_from_flags(const FlagValues& flags) {
  BEV_CHECK(names_tokenizer(flags), Usage,
            "no tokenizer is named; legal: --tokenizer PATH, --tokenizer-type gpt2 --vocab-file "
            "vocab.json --merge-file merges.txt, --tokenizer-type byte, and others (--help)");
  TokenizerSpec spec;
  if (flags.has("--tokenizer")) {
    for (const std::string_view other :
         {"--tokenizer-type", "--vocab-file", "--merge-file", "--tokenizer-model"})
      flags.require_not_both("--tokenizer", other);
    spec = detect_tokenizer(flags.path("--tokenizer"));
  } else {
    spec.kind = kind_of(flags.text("--tokenizer-type"));
    spec.vocab_file = flags.path("--vocab-file");
    spec.merge_file = flags.path("--merge-file");
    spec.model = flags.path("--tokenizer-model");
  }
  spec.vocab = flags.integer("--vocab-size", 0, 1, INT32_MAX - 2);
  spec.eod = flags.integer("--null-tokenizer-eod-id", -1, 0, INT32_MAX - 1);
  spec.extra_ids = flags.integer("--vocab-extra-ids", 0, 0, 1 << 20);
  spec.classic = flags.choice("--compat", 0, kCompat) == 1;
  spec.add_template = !flags.has("--tokenizer-hf-no-include-special-tokens");
  return spec;
}

}  // namespace bev::app
