#include "config/megatron/megatron_flags.h"

#include <algorithm>
#include <limits>

#include "base/format.h"
#include "config/parse/command_line.h"
#include "config/parse/notation.h"
#include "config/parse/value.h"

namespace bev {

namespace {

// What one value of the flag is: "N", "X", "TEXT" or "a|b".
std::string_view kind_of_value(const MegatronFlag& flag) {
  return flag.takes.substr(0, flag.takes.find(' '));
}

bool same_value(std::string_view kind, std::string_view a, std::string_view b) {
  if (a == b) return true;
  if (kind != "N" && kind != "X") return false;
  const auto x = parse_real(a), y = parse_real(b);
  return x && y && *x == *y;
}

bool same_values(const MegatronFlag& flag, std::string_view wanted,
                 std::span<const std::string> values) {
  const auto words = split_words(wanted);
  const std::string_view kind = kind_of_value(flag);
  return !wanted.empty() && std::equal(words.begin(), words.end(), values.begin(), values.end(),
                                       [&](std::string_view word, const std::string& value) {
                                         return same_value(kind, word, value);
                                       });
}

}  // namespace

const std::vector<FlagTopic>& megatron_topics() {
  static const std::vector<FlagTopic> all = [] {
    std::vector<FlagTopic> topics;
    for (const auto list :
         {model_topics, other_attention_topics, experts_topics, precision_topics, parallel_topics,
          kernels_topics, optimizer_topics, run_topics, checkpoints_topics, data_topics,
          logging_topics, distillation_topics, bert_t5_topics, retrieval_topics, vision_topics,
          reinforcement_topics, inference_topics})
      for (const FlagTopic& topic : list()) topics.push_back(topic);
    return topics;
  }();
  return all;
}

KnownFlag find_megatron_flag(std::string_view name) {
  for (const FlagTopic& topic : megatron_topics())
    for (const MegatronFlag& flag : topic.flags)
      for (const std::string_view spelling : split_words(flag.flag))
        if (spelling == name) return {&topic, &flag};
  return {};
}

ValueCount value_count(const MegatronFlag& flag) {
  if (flag.is_switch()) return {0, 0};
  if (flag.takes.ends_with(" ...")) return {1, std::numeric_limits<size_t>::max()};
  const size_t count = split_words(flag.takes).size();
  return {count, count};
}

std::string wrong_value(const MegatronFlag& flag, std::string_view text) {
  const std::string_view kind = kind_of_value(flag);
  if (kind == "N")
    return parse_integer(text) ? "" : format("{} is not an integer", toml_string(text));
  if (kind == "X") return parse_real(text) ? "" : format("{} is not a number", toml_string(text));
  if (kind == "TEXT") return {};
  const auto words = split_words(kind, '|');
  if (std::find(words.begin(), words.end(), text) != words.end()) return {};
  return format("{} is not one of the choices", toml_string(text));
}

std::string legal_values(const MegatronFlag& flag) {
  const std::string_view kind = kind_of_value(flag);
  if (kind == "N") return "an integer";
  if (kind == "X") return "a number";
  if (kind == "TEXT") return "text";
  return enumerate(split_words(kind, '|'));
}

bool is_standard(const MegatronFlag& flag, std::span<const std::string> values) {
  const bool empty = values.size() == 1 && values[0].empty();
  return same_values(flag, flag.standard, values) || same_values(flag, flag.also, values) ||
         (empty && flag.standard.empty());
}

namespace {

void drop(CommandLine& line, std::string_view flag) {
  std::erase_if(line.assignments,
                [&](const Assignment& a) { return a.alias != nullptr && a.alias->flag == flag; });
}

}  // namespace

std::string parse_megatron_window(std::string_view text) {
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

std::string parse_megatron_sharding(std::string_view text) {
  constexpr std::string_view kStrategies[] = {"no_shard", "optim", "optim_grads",
                                              "optim_grads_params"};
  const auto* found = std::ranges::find(kStrategies, text);
  return found == std::end(kStrategies) ? std::string(text)
                                        : format("{}", found - std::begin(kStrategies));
}

std::string parse_megatron_tokenizer(std::string_view text) {
  return std::string(text == "BertWordPieceTokenizer" ? "BertWordPieceLowerCase" : text);
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
  if (has("--use-megatron-fsdp") || has("--use-torch-fsdp2"))
    drop(line, "--use-distributed-optimizer");
  if (has("--data-parallel-sharding-strategy") && !has("--use-megatron-fsdp")) {
    drop(line, "--data-parallel-sharding-strategy");
    line.notes.emplace_back(
        "--data-parallel-sharding-strategy is accepted and changes nothing: Megatron-LM ignores it "
        "without --use-megatron-fsdp");
  }
  // The model of the tokenizer decided about upper case.
  const auto type = given.find("--tokenizer-type"), model = given.find("--tokenizer-model-type");
  if (type != given.end() && type->second == "BertWordPieceTokenizer" && model != given.end() &&
      model->second.ends_with("-cased")) {
    for (Assignment& a : line.assignments)
      if (a.alias != nullptr && a.alias->flag == "--tokenizer-type")
        a.value = *parse_value(*a.field, "bert-cased").value;
    std::erase_if(line.notes, [](const std::string& note) {
      return note.starts_with("--tokenizer-model-type ");
    });
  }
  if (has("--no-pad-vocab-size") || has("--disable-pad-vocab-size"))
    drop(line, "--make-vocab-size-divisible-by");
}

}  // namespace bev
