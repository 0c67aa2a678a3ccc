// bevatron tokenizer info: what a vocabulary holds.
#include <array>
#include <cstdio>
#include <map>

#include "app/cli/shared_flags.h"
#include "app/tokenizer/tokenizer_verbs.h"
#include "base/format.h"
#include "base/json.h"

namespace bev::app {

namespace {

constexpr auto kTokenizerInfoFlags = with_tokenizer_flags(std::array<VerbFlag, 2>{{
    {"--pad-to", "N", "say how many rows a model's table has at multiples of this [default: 128]"},
    {"--json", "", "print JSON with stable keys instead of tables"},
}});

constexpr std::array<std::string_view, 7> kRoleNames{"unknown",  "begin",    "end", "pad",
                                                     "classify", "separate", "mask"};

struct Vocabulary {
  std::string kind;
  int64_t size = 0, padded = 0, multiple = 0;
  std::optional<int32_t> eod;
  std::map<std::string, int32_t> roles;
  int32_t longest = 0;
  size_t longest_bytes = 0;
  std::map<size_t, int64_t> lengths;  // bytes of text to how many tokens have them
};

Vocabulary look(const Tokenizer& tokenizer, TokenizerKind kind, int64_t multiple) {
  Vocabulary all;
  all.kind = kTokenizerNames[static_cast<size_t>(kind)];
  all.size = tokenizer.vocab_size();
  all.multiple = multiple;
  all.padded = (all.size + multiple - 1) / multiple * multiple;
  all.eod = tokenizer.eod_id();
  for (size_t role = 0; role < kRoleNames.size(); ++role)
    if (const auto id = tokenizer.role_id(static_cast<TokenRole>(role)))
      all.roles[std::string(kRoleNames[role])] = *id;
  for (int32_t id = 0; id < all.size; ++id) {
    const std::array<int32_t, 1> one{id};
    const size_t bytes = tokenizer.decode(one).size();
    ++all.lengths[bytes];
    if (bytes > all.longest_bytes) {
      all.longest_bytes = bytes;
      all.longest = id;
    }
  }
  return all;
}

// Bytes that are no text are replaced.
std::string one_line(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json as_json(const Vocabulary& all, const Tokenizer& tokenizer) {
  Json json{{"kind", all.kind},
            {"tokens", all.size},
            {"padded", all.padded},
            {"longest",
             {{"id", all.longest},
              {"name", tokenizer.token_name(all.longest)},
              {"bytes", all.longest_bytes}}}};
  json["eod"] = all.eod ? Json(*all.eod) : Json();
  json["roles"] = Json::object();
  for (const auto& [role, id] : all.roles)
    json["roles"][role] = {{"id", id}, {"name", tokenizer.token_name(id)}};
  json["bytes_to_tokens"] = Json::object();
  for (const auto& [bytes, count] : all.lengths)
    json["bytes_to_tokens"][std::to_string(bytes)] = count;
  return json;
}

void print_table(const Vocabulary& all, const Tokenizer& tokenizer) {
  fmt::print("{}: {} tokens; a model's table of multiples of {} has {} rows\n", all.kind,
             with_commas(all.size), all.multiple, with_commas(all.padded));
  const auto name = [&](int32_t id) { return in_quotes(tokenizer.token_name(id)); };
  if (all.eod) {
    fmt::print("  ends a document: {} {}\n", *all.eod, name(*all.eod));
  } else {
    fmt::print("  no token ends a document\n");
  }
  for (const auto& [role, id] : all.roles) fmt::print("  {}: {} {}\n", role, id, name(id));
  fmt::print("  the longest: {} {}, {} bytes\n", all.longest, name(all.longest), all.longest_bytes);
  fmt::print("\n  bytes  tokens\n");
  for (const auto& [bytes, count] : all.lengths) fmt::print("  {:>5}  {}\n", bytes, count);
}

}  // namespace

int tokenizer_info(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "tokenizer info",
       .summary = "Says what a vocabulary holds: its size, special tokens and how long tokens are.",
       .flags = kTokenizerInfoFlags},
      args);
  if (!flags) return 0;
  const TokenizerSpec spec = tokenizer_from_flags(*flags);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(spec);
  const Vocabulary all =
      look(*tokenizer, spec.kind, flags->integer("--pad-to", 128, 1, int64_t{1} << 24));
  if (flags->has("--json")) {
    fmt::print("{}\n", one_line(as_json(all, *tokenizer), 2));
  } else {
    print_table(all, *tokenizer);
  }
  return 0;
}

}  // namespace bev::app
