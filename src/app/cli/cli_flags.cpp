#include "app/cli/cli_flags.h"

#include <algorithm>
#include <cstdio>

#include "app/cli/console.h"
#include "base/check.h"
#include "base/json.h"
#include "config/parse/arg_scanner.h"
#include "config/parse/help.h"
#include "config/parse/notation.h"
#include "config/parse/problem.h"

namespace bev::app {

namespace {

constexpr std::string_view kPlace = "the arguments";
constexpr std::string_view kList = " ...";

// "-5" is a number and "-" a file. "--" ends the flags: like a flag, it is the value of none.
bool is_verb_flag(std::string_view arg) {
  return arg.size() > 1 && arg[0] == '-' && !parse_real(arg);
}

bool may_stand_alone(const VerbFlag& flag) { return flag.value.starts_with('['); }

bool takes_list(const VerbFlag& flag) { return flag.value.ends_with(kList); }

// The flag that was meant: the only one that begins so ("-o", "--out"), or the nearest in letters.
std::string hint_for(std::string_view name, std::span<const VerbFlag> flags) {
  std::vector<std::string> names{std::string(kHelpFlag.name)};
  for (const VerbFlag& flag : flags) names.emplace_back(flag.name);
  const std::string_view word = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::vector<std::string> longer;
  for (const std::string& candidate : names)
    if (std::string_view(candidate).substr(2).starts_with(word)) longer.push_back(candidate);
  const std::string meant = longer.size() == 1 ? longer.front() : nearest(name, names);
  return meant.empty() ? "--help lists all flags" : format("did you mean {}?", meant);
}

// Sorts arguments into flags with values and the rest, and collects what is wrong.
class Sorter {
 public:
  Sorter(const VerbSpec& verb, std::span<const std::string> args)
      : verb_(verb), scan_(args, is_verb_flag) {}

  void sort() {
    while (const auto arg = scan_.next()) {
      if (arg->text == "--") {
        positional.insert(positional.end(), scan_.rest().begin(), scan_.rest().end());
        break;
      }
      if (arg->is_flag) {
        flag(*arg);
      } else {
        positional.push_back(arg->text);
      }
    }
    count_positional();
    throw_if_any(problems_, kPlace);
  }

  std::map<std::string, std::vector<std::string>, std::less<>> values;
  std::vector<std::string> positional;

 private:
  void flag(const ScannedArg& arg) {
    const std::string& name = arg.name;
    const VerbFlag* declared = find_flag(verb_.flags, name);
    if (declared == nullptr) {
      add(format("bevatron {} has no flag {}", verb_.name, in_quotes(name)), {},
          hint_for(name, verb_.flags));
      unknown_ = true;
      return;
    }
    std::vector<std::string>& list = values[name];
    if (declared->value.empty()) {
      if (arg.attached)
        add(format("{} takes no value", name), format("it was written {}", in_quotes(arg.text)),
            format("{} alone", name));
      return;
    }
    if (!takes_list(*declared)) list.clear();
    if (may_stand_alone(*declared) && !arg.attached) {
      if (scan_.has_value() && parse_real(scan_.rest().front())) list.push_back(scan_.take());
    } else if (const auto value = scan_.take_value(arg)) {
      list.push_back(*value);
      if (!takes_list(*declared) || arg.attached) return;
      for (std::string& more : scan_.take_values(SIZE_MAX)) list.push_back(std::move(more));
    } else {
      add(format("{} has no value", name), scan_.why_no_value(in_quotes),
          format("{} {}", name, declared->value));
      list.emplace_back();
    }
  }

  void count_positional() {
    // A misspelt flag leaves its value behind; only the flag is worth a report.
    if (unknown_) return;
    if (positional.size() > verb_.max_positional) {
      add(format("an argument belongs to nothing: {}", in_quotes(positional[verb_.max_positional])),
          verb_.positional.empty() ? format("bevatron {} takes flags only", verb_.name)
                                   : format("at most {} may be given without a flag: {}",
                                            verb_.max_positional, verb_.positional),
          "--help lists all flags");
    } else if (positional.size() < verb_.min_positional) {
      add("an argument is missing",
          format("{} given without a flag, {} needed", positional.size(), verb_.min_positional),
          format("bevatron {} {}", verb_.name, verb_.positional));
    }
  }

  void add(std::string what, std::string why, std::string legal) {
    problems_.push_back(
        {.what = std::move(what), .where = {}, .why = std::move(why), .legal = std::move(legal)});
  }

  const VerbSpec& verb_;
  ArgScanner scan_;
  std::vector<Problem> problems_;
  bool unknown_ = false;
};

[[noreturn]] void refuse(std::string what, std::string why, std::string legal) {
  const Problem problem{
      .what = std::move(what), .where = {}, .why = std::move(why), .legal = std::move(legal)};
  throw Error(ErrorKind::Usage, report({&problem, 1}, kPlace));
}

[[noreturn]] void refuse_value(std::string_view flag, const std::string& value, std::string why,
                               std::string legal) {
  refuse(format("{} {} is not possible", flag, in_quotes(value)), std::move(why), std::move(legal));
}

// `what` is "an integer", "a size".
template <class Number>
Number checked(std::string_view flag, const std::string& text, std::optional<Number> value,
               std::string_view what, Number min, Number max) {
  const std::string legal = format("{} from {} to {}", what, min, max);
  if (!value) refuse_value(flag, text, format("that is not {}", what), legal);
  if (*value < min || *value > max)
    refuse_value(flag, text, *value < min ? "that is too small" : "that is too large", legal);
  return *value;
}

}  // namespace

FlagValues::FlagValues(const VerbSpec& verb, std::span<const std::string> args)
    : flags_(verb.flags) {
  Sorter sorter(verb, args);
  sorter.sort();
  values_ = std::move(sorter.values);
  positional_ = std::move(sorter.positional);
}

const VerbFlag& FlagValues::declared(std::string_view flag) const {
  const VerbFlag* found = find_flag(flags_, flag);
  BEV_CHECK(found != nullptr, Internal, "the verb asks for {}, which it does not declare", flag);
  return *found;
}

const std::string* FlagValues::value_of(std::string_view flag) const {
  BEV_CHECK(!declared(flag).value.empty(), Internal, "{} is declared without a value", flag);
  const auto found = values_.find(flag);
  const bool is_given = found != values_.end() && !found->second.empty();
  return is_given ? &found->second.back() : nullptr;
}

bool FlagValues::has(std::string_view flag) const { return values_.contains(declared(flag).name); }

std::string FlagValues::text(std::string_view flag, std::string_view otherwise) const {
  const std::string* value = value_of(flag);
  return value == nullptr ? std::string(otherwise) : *value;
}

std::string FlagValues::path(std::string_view flag, std::string_view otherwise) const {
  const std::string value = text(flag, otherwise);
  if (has(flag) && (value.empty() || !is_plain_text(value)))
    refuse_value(flag, value, value.empty() ? "it is empty" : "it is not UTF-8",
                 "the name of a file or directory");
  return value;
}

std::vector<std::string> FlagValues::texts(std::string_view flag) const {
  BEV_CHECK(takes_list(declared(flag)), Internal, "{} is not declared as a list", flag);
  const auto found = values_.find(flag);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

int64_t FlagValues::integer(std::string_view flag, int64_t otherwise, int64_t min,
                            int64_t max) const {
  const std::string* value = value_of(flag);
  if (value == nullptr) return otherwise;
  return checked<int64_t>(flag, *value, parse_integer(*value), "an integer", min, max);
}

double FlagValues::real(std::string_view flag, double otherwise, double min, double max) const {
  const std::string* value = value_of(flag);
  if (value == nullptr) return otherwise;
  return checked<double>(flag, *value, parse_real(*value), "a number", min, max);
}

int64_t FlagValues::size(std::string_view flag, int64_t otherwise, int64_t min, int64_t max) const {
  const std::string* value = value_of(flag);
  if (value == nullptr) return otherwise;
  return checked<int64_t>(flag, *value, parse_size(*value), format("a size ({})", kSizeNotation),
                          min, max);
}

size_t FlagValues::choice(std::string_view flag, size_t otherwise,
                          std::span<const std::string_view> names) const {
  const std::string* value = value_of(flag);
  if (value == nullptr) return otherwise;
  const auto found = std::find(names.begin(), names.end(), *value);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::vector<std::string> candidates(names.begin(), names.end());
  const std::string near = nearest(*value, candidates);
  refuse_value(flag, *value,
               near.empty() ? "there is no such choice" : format("did you mean {}?", near),
               format("one of {}", fmt::join(names, ", ")));
}

void FlagValues::require_not_both(std::string_view a, std::string_view b) const {
  if (has(a) && has(b))
    refuse(format("{} and {} exclude each other", a, b), "both are given", "one of them");
}

void FlagValues::require_with(std::string_view flag, std::string_view needed) const {
  if (has(flag) && !has(needed))
    refuse(format("{} needs {}", flag, needed), format("{} is not given", needed),
           format("{} {} {}", flag, needed, declared(needed).value));
}

std::string help_text(const VerbSpec& verb, size_t columns) {
  std::string use = format("usage: bevatron {} [--flag VALUE ...]", verb.name);
  if (!verb.positional.empty()) use += format(" {}", verb.positional);
  std::vector<VerbFlag> flags(verb.flags.begin(), verb.flags.end());
  flags.push_back(kHelpFlag);
  return format("{}\n\n{}\n\n{}", wrap(use, columns, 0), wrap(verb.summary, columns, 0),
                own_flags_help(flags, columns));
}

std::optional<FlagValues> flags_for(const VerbSpec& verb, std::span<const std::string> args,
                                    bool prints) {
  for (const std::string& arg : args) {
    if (arg == "--") break;
    if (!asks_for_help(arg)) continue;
    if (prints) fmt::print("{}", help_text(verb, text_columns()));
    return std::nullopt;
  }
  return FlagValues(verb, args);
}

}  // namespace bev::app
