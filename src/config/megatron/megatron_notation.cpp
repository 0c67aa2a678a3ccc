#include "config/megatron/megatron_notation.h"

#include "base/format.h"
#include "config/parse/command_line.h"

namespace bev {

namespace {

void drop(CommandLine& line, std::string_view flag) {
  std::erase_if(line.assignments,
                [&](const Assignment& a) { return a.alias != nullptr && a.alias->flag == flag; });
}

}  // namespace

std::string window_of_megatron(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != ' ' && c != '(' && c != ')') plain += c;
  const size_t comma = plain.find(',');
  if (comma == std::string::npos) return std::string(text);
  const auto before = parse_integer(std::string_view(plain).substr(0, comma));
  const auto after = parse_integer(std::string_view(plain).substr(comma + 1));
  if (!before || !after || *before < -1 || *before >= int64_t{1} << 32 || *after < -1 || *after > 0)
    return std::string(text);
  return format("{}", *before == -1 ? 0 : *before + 1);
}

void combine_megatron_flags(const GivenFlags& given, CommandLine& line) {
  const auto has = [&](std::string_view flag) { return given.find(flag) != given.end(); };
  // Before there was a choice of methods, the layers were those of a group. What names a method
  // comes behind and wins.
  if (has("--checkpoint-num-layers")) {
    const Field* method = find_field("recompute.method");
    line.assignments.insert(
        line.assignments.begin(),
        {.field = method,
         .value = *parse_value(*method, "uniform").value,
         .origin = {.kind = OriginKind::Flag, .text = "--checkpoint-num-layers"}});
  }
  if (has("--num-query-groups") && !has("--group-query-attention")) {
    drop(line, "--num-query-groups");
    line.notes.emplace_back(
        "--num-query-groups is accepted and changes nothing: Megatron-LM ignores it without "
        "--group-query-attention");
  }
  if (has("--no-pad-vocab-size") || has("--disable-pad-vocab-size"))
    drop(line, "--make-vocab-size-divisible-by");
}

}  // namespace bev
