// Flags of Megatron-LM, of all its versions, that set no field here: those without meaning, which
// are accepted with a note, and those whose capability is missing, which may only have their
// default. Flags that do set a field are aliases in its description.
#pragma once

#include <cstdint>
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

}  // namespace bev
