// Flags of Megatron-LM, of all its versions, that set no field here: those without meaning, which
// are accepted with a note, and those whose capability is missing, which may only have their
// default. Flags that do set a field are aliases in its description.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

enum class FlagClass : uint8_t {
  Later,  // would change numbers, model, data, output or end of the run; only the default works
  Noted,  // changes nothing here
};

struct MegatronFlag {
  std::string_view flag;  // several spellings with blanks between
  // What follows it: "" nothing, "off" nothing and that is the default, "N" an integer, "X" a
  // number, "TEXT", "a|b" one of the words; "N N N" three, "N ..." all up to the next flag.
  std::string_view takes{};
  std::string_view standard{};  // the default; empty: not given
  std::string_view also{};      // another value that means the same as the default

  bool is_switch() const { return takes.empty() || takes == "off"; }
};

// Flags that share a reason.
struct FlagTopic {
  std::string_view title;
  FlagClass kind;
  std::string_view reason;  // a sentence without its full stop
  std::span<const MegatronFlag> flags;
};

const std::vector<FlagTopic>& megatron_topics();

struct KnownFlag {
  const FlagTopic* topic = nullptr;
  const MegatronFlag* flag = nullptr;
};

// By one of its spellings; null pointers when there is none.
KnownFlag find_megatron_flag(std::string_view name);

// How many values may follow: at least and at most.
struct ValueCount {
  size_t least, most;
};
ValueCount value_count(const MegatronFlag& flag);

// Why the text cannot be one of its values; empty when it can.
std::string wrong_value(const MegatronFlag& flag, std::string_view text);

// "an integer", "a number", "text", "a, b or c".
std::string legal_values(const MegatronFlag& flag);

// Whether the values are the default or mean the same; numbers are compared as numbers. An empty
// text is as good as none.
bool is_standard(const MegatronFlag& flag, std::span<const std::string> values);

// The tables of Megatron's flags, one file per subject. Used by megatron_flags.cpp only.

std::span<const FlagTopic> model_topics();
std::span<const FlagTopic> other_attention_topics();
std::span<const FlagTopic> experts_topics();
std::span<const FlagTopic> precision_topics();
std::span<const FlagTopic> parallel_topics();
std::span<const FlagTopic> kernels_topics();
std::span<const FlagTopic> optimizer_topics();
std::span<const FlagTopic> run_topics();
std::span<const FlagTopic> checkpoints_topics();
std::span<const FlagTopic> data_topics();
std::span<const FlagTopic> logging_topics();
std::span<const FlagTopic> distillation_topics();
std::span<const FlagTopic> bert_t5_topics();
std::span<const FlagTopic> retrieval_topics();
std::span<const FlagTopic> vision_topics();
std::span<const FlagTopic> reinforcement_topics();
std::span<const FlagTopic> inference_topics();

// Notations of Megatron's that are not ours, and what its flags mean together.

struct CommandLine;

// "(127,0)" or "127,0", the tokens seen before and after the own one, as model.window counts them:
// "128". A side of -1 has no end. A text that is not such a pair comes back as it is.
std::string parse_megatron_window(std::string_view text);
// "optim_grads", the sharding of Megatron FSDP over data-parallel ranks, as parallel.zero: "2".
std::string parse_megatron_sharding(std::string_view text);
// The name that a tokenizer of 2019 has had since 2020.
std::string parse_megatron_tokenizer(std::string_view text);

// Megatron's flags on a command line with their first value.
using GivenFlags = std::map<std::string, std::string, std::less<>>;

// Drops assignments of flags that Megatron ignores beside, or without, other ones, and adds what a
// flag says besides its value; what the user may have meant otherwise gets a note.
void combine_megatron_flags(const GivenFlags& given, CommandLine& line);

}  // namespace bev
