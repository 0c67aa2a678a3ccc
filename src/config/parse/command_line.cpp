#include "config/parse/command_line.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/format.h"
#include "config/megatron/megatron_flags.h"
#include "config/megatron/megatron_scripts.h"
#include "config/parse/arg_scanner.h"
#include "config/parse/notation.h"
#include "config/parse/problem.h"
#include "config/parse/value.h"

namespace bev {

namespace {

bool is_flag(std::string_view arg) { return arg.size() > 2 && arg.substr(0, 2) == "--"; }

// Arguments can hold anything; messages hold one printable line of it.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 80)) out += c >= ' ' && c != 0x7F ? c : '?';
  return text.size() > 80 ? out + "..." : out;
}

struct FlagTarget {
  const Field* field = nullptr;
  const Alias* alias = nullptr;
};

FlagTarget find_target(std::string_view name) {
  if (const Field* field = find_field(name.substr(2))) return {field, nullptr};
  if (const Field* field = find_renamed_field(name.substr(2))) return {field, nullptr};
  for (const Field& field : fields())
    for (const Alias& alias : field.about.aliases)
      if (alias.flag == name) return {&field, &alias};
  return {};
}

class Parser {
 public:
  Parser(std::span<const std::string> args, std::span<const VerbFlag> own, Findings& findings)
      : scan_(args, is_flag), own_(own), findings_(findings) {}

  CommandLine parse() {
    while (const auto arg = scan_.next()) {
      if (arg->is_flag) {
        flag(*arg);
      } else if (asks_for_help(arg->text)) {
        flag({.name = std::string(kHelpFlag.name)});
      } else {
        positional(arg->text);
      }
    }
    combine_megatron_flags(given_, line_);
    return std::move(line_);
  }

 private:
  void flag(const ScannedArg& arg) {
    last_flag_ = arg.name;
    if (own_flag(arg)) return;
    if (const FlagTarget target = find_target(arg.name); target.field != nullptr) {
      if (find_renamed_field(arg.name.substr(2)) != nullptr)
        note(renamed_note(*target.field, "--"));
      field_flag(arg, target);
    } else if (!megatron_flag(arg)) {
      unknown_flag(arg.name);
    }
  }

  bool own_flag(const ScannedArg& arg) {
    const VerbFlag* own = find_flag(own_, arg.name);
    if (own == nullptr) return false;
    if (!own->sets.empty()) {
      field_flag(arg, {find_field(own->sets), nullptr});
    } else if (own->value.starts_with('[')) {
      const bool follows = !arg.attached && scan_.has_value() && !is_toml(scan_.rest().front());
      line_.own[arg.name] = follows ? scan_.take() : arg.attached.value_or("");
    } else if (own->value.empty()) {
      if (arg.attached) no_value_wanted(arg.name);
      line_.own[arg.name] = "";
    } else if (const auto value = value_for(arg, std::string(own->value))) {
      line_.own[arg.name] = *value;
    }
    return true;
  }

  void field_flag(const ScannedArg& arg, const FlagTarget& target) {
    if (target.alias != nullptr && target.alias->part > 0) return several_fields(arg);
    const Field& field = *target.field;
    const bool fixed = target.alias != nullptr && !target.alias->sets.empty();
    std::string text;
    if (field.type == FieldType::Boolean) {
      text = boolean_text(arg, fixed ? std::string(target.alias->sets) : "true");
    } else if (fixed) {
      if (arg.attached) return no_value_wanted(arg.name);
      text = std::string(target.alias->sets);
    } else {
      const auto value = value_for(arg, legal_values(field, target.alias));
      if (!value) {
        findings_.doubtful.insert(field.path);
        return;
      }
      text = *value;
    }
    assign(arg.name, target, text, fixed ? nullptr : target.alias, !arg.attached);
  }

  // `words` is the alias whose words for choices count.
  void assign(const std::string& name, const FlagTarget& target, const std::string& text,
              const Alias* words, bool list_goes_on = false) {
    const Field& field = *target.field;
    if (target.alias != nullptr) given_[name] = text;
    const bool rewritten = target.alias != nullptr && target.alias->reads != nullptr;
    Parsed parsed = parse_value(field, rewritten ? target.alias->reads(text) : text, words);
    if (field.type == FieldType::List && parsed.value && list_goes_on)
      take_rest_of_list(field, parsed);
    if (!parsed.value) {
      if (parsed.later) {
        add({.what = format("{} {} does not work in this version", name, shown(text)),
             .where = format("{} on the command line", name),
             .why = "Megatron-LM has this choice, this version has not",
             .legal = std::move(parsed.legal)});
      } else {
        impossible(name, text, parsed.why, parsed.legal);
      }
      findings_.doubtful.insert(field.path);
      return;
    }
    line_.assignments.push_back({.field = &field,
                                 .value = std::move(*parsed.value),
                                 .origin = {.kind = OriginKind::Flag, .text = name},
                                 .alias = target.alias});
  }

  // A flag whose values belong to one field each.
  void several_fields(const ScannedArg& arg) {
    const std::string& name = arg.name;
    std::vector<FlagTarget> targets;
    for (const Field& field : fields())
      for (const Alias& alias : field.about.aliases)
        if (alias.flag == name) targets.push_back({&field, &alias});
    const std::vector<std::string> values = scan_.take_values(arg.attached ? 0 : targets.size());
    if (values.size() < targets.size()) {
      for (const FlagTarget& target : targets) findings_.doubtful.insert(target.field->path);
      too_few(name, arg.attached ? 1 : values.size(), targets.size(),
              format("{} followed by {} values", name, targets.size()));
      return;
    }
    for (const FlagTarget& target : targets)
      assign(name, target, values[target.alias->part - 1], target.alias);
  }

  // A list goes on to the next flag.
  void take_rest_of_list(const Field& field, Parsed& parsed) {
    TextList list = std::get<TextList>(*parsed.value);
    for (std::string& value : scan_.take_values(SIZE_MAX)) list.push_back(std::move(value));
    parsed = convert_value(field, list);
  }

  // A boolean flag stands alone, or before true, false, 1 or 0. An alias that means false turns the
  // word round: --untie-... false leaves the embedding tied.
  std::string boolean_text(const ScannedArg& arg, const std::string& alone) {
    std::string word = arg.attached.value_or("true");
    if (!arg.attached && scan_.has_value() && parse_boolean(scan_.rest().front()))
      word = scan_.take();
    const std::optional<bool> value = parse_boolean(word);
    if (!value) return word;
    return *value == (alone == "true") ? "true" : "false";
  }

  bool megatron_flag(const ScannedArg& arg) {
    const std::string& name = arg.name;
    const KnownFlag known = find_megatron_flag(name);
    if (known.flag == nullptr) return false;
    const MegatronFlag& flag = *known.flag;
    if (flag.is_switch()) {
      const std::string word = boolean_text(arg, "true");
      if (!parse_boolean(word)) {
        no_value_wanted(name);
      } else if (known.topic->kind == FlagClass::Noted) {
        note_ignored(name, *known.topic);
      } else if (word == "true" && flag.takes != "off") {
        refuse_later(name, "", "", known.topic->reason);
      }
      return true;
    }
    const std::optional<std::vector<std::string>> values = values_for(arg, flag);
    if (!values) return true;
    given_[name] = values->front();
    for (const std::string& value : *values) {
      if (std::string why = wrong_value(flag, value); !why.empty()) {
        impossible(name, value, why, legal_values(flag));
        return true;
      }
    }
    if (known.topic->kind == FlagClass::Noted) {
      note_ignored(name, *known.topic);
    } else if (!is_standard(flag, *values)) {
      std::string all;
      for (const std::string& value : *values) all += (all.empty() ? "" : " ") + shown(value);
      refuse_later(name, all, flag.standard, known.topic->reason);
    }
    return true;
  }

  // The values of a flag that sets no field. Empty when there are too few; that has been reported.
  std::optional<std::vector<std::string>> values_for(const ScannedArg& arg,
                                                     const MegatronFlag& flag) {
    const ValueCount count = value_count(flag);
    std::vector<std::string> values = scan_.take_values(arg.attached ? 0 : count.most);
    if (arg.attached) values.push_back(*arg.attached);
    if (values.size() >= count.least) return values;
    too_few(arg.name, values.size(), count.least, format("{} {}", arg.name, flag.takes));
    return std::nullopt;
  }

  void too_few(const std::string& name, size_t given, size_t wanted, std::string legal) {
    add({.what =
             given == 0 ? format("{} has no value", name) : format("{} has too few values", name),
         .where = format("{} on the command line", name),
         .why = format("{} of {} values are given", given, wanted),
         .legal = std::move(legal)});
  }

  void note_ignored(const std::string& name, const FlagTopic& topic) {
    note(format("{} is accepted and changes nothing: {}", name, topic.reason));
  }

  // One line per flag, however often it is given.
  void note(std::string text) {
    if (std::find(line_.notes.begin(), line_.notes.end(), text) == line_.notes.end())
      line_.notes.push_back(std::move(text));
  }

  // Something of Megatron's that is missing. `works` is what is not, empty when it is nothing.
  void refuse_later(const std::string& name, const std::string& value, std::string_view works,
                    std::string_view reason) {
    const std::string given = value.empty() ? name : format("{} {}", name, value);
    add({.what = works.empty() ? format("{} does not work in this version", given)
                               : format("{}: only {} works in this version", given, works),
         .where = format("{} on the command line", name),
         .why = std::string(reason),
         .legal = works.empty() ? "the command line without it"
                                : format("{} {}, or the command line without it", name, works)});
  }

  void impossible(const std::string& name, std::string_view text, const std::string& why,
                  const std::string& legal) {
    add({.what = format("{} has an impossible value", name),
         .where = format("{} {} on the command line", name, shown(text)),
         .why = why,
         .legal = legal});
  }

  void unknown_flag(const std::string& name) {
    std::vector<std::string> names;
    for (const Field& field : fields()) {
      names.push_back("--" + field.path);
      for (const Alias& alias : field.about.aliases) names.emplace_back(alias.flag);
    }
    for (const VerbFlag& own : own_) names.emplace_back(own.name);
    for (const FlagTopic& topic : megatron_topics())
      for (const MegatronFlag& flag : topic.flags)
        for (const std::string_view spelling : split_words(flag.flag)) names.emplace_back(spelling);
    std::string near = flags_with_key(name.substr(2));
    if (near.empty()) near = nearest(name, names);
    if (const FlagTarget target = find_target(near.empty() ? "--" : near); target.field != nullptr)
      findings_.doubtful.insert(target.field->path);
    add({.what = format("there is no flag {}", shown(name)),
         .where = format("{} on the command line", shown(name)),
         .why = {},
         .legal = near.empty() ? "--help lists all flags" : format("did you mean {}?", near)});
    // Its value, if it has one, is not a file name.
    if (scan_.has_value() && !is_toml(scan_.rest().front())) scan_.take();
  }

  // "--layers" is far from "--model.layers" in letters but clear in meaning.
  static std::string flags_with_key(std::string_view key) {
    std::string list;
    for (const Field& field : fields())
      if (field.key() == key) list += format("{}--{}", list.empty() ? "" : " or ", field.path);
    return list;
  }

  static bool is_toml(std::string_view arg) { return arg.ends_with(".toml"); }

  // A script chooses the family of the model; its tokenizer counts where no other is named.
  void script(const std::string& arg) {
    const MegatronScript* found = find_megatron_script(arg);
    if (found != nullptr && found->verb != "train") found = nullptr;
    const std::string where = format("{} on the command line", shown(arg));
    if (found == nullptr || line_.script != nullptr) {
      add({.what = found == nullptr ? format("{} is no training script of Megatron-LM", shown(arg))
                                    : "two training scripts are given",
           .where = where,
           .why = "a script of Python is not run: its name says which family of models is trained",
           .legal = "one of pretrain_gpt.py, pretrain_bert.py, pretrain_t5.py and pretrain_ict.py, "
                    "or no script"});
      return;
    }
    line_.script = found;
    if (found->family.empty()) {
      findings_.doubtful.insert("model.family");
      add({.what = format("{} does not work in this version", found->name),
           .where = where,
           .why = "this version trains GPT, BERT, T5 and bi-encoders",
           .legal = "pretrain_gpt.py, pretrain_bert.py, pretrain_t5.py or pretrain_ict.py"});
      return;
    }
    const Field* family = find_field("model.family");
    line_.assignments.push_back(
        {.field = family,
         .value = *parse_value(*family, found->family).value,
         .origin = {.kind = OriginKind::Flag, .text = std::string(found->name)},
         .alias = nullptr});
  }

  void positional(const std::string& arg) {
    if (arg.ends_with(".py")) return script(arg);
    if (line_.file.empty() && !arg.empty() && (is_toml(arg) || last_flag_.empty())) {
      line_.file = arg;
      return;
    }
    if (!line_.file.empty() && is_toml(arg)) {
      add({.what = "two configuration files are given",
           .where = format("{} and {}", shown(line_.file), shown(arg)),
           .why = "a run has one file; flags change single values",
           .legal = "one of them"});
      return;
    }
    std::string where = format("{} on the command line",
                               arg.empty() ? "an empty argument" : toml_string(shown(arg)));
    if (!last_flag_.empty()) where += format(", after {}", last_flag_);
    std::string legal = "a configuration file (NAME.toml) or flags that start with --";
    const FlagTarget target = find_target(last_flag_.empty() ? "--" : last_flag_);
    if (target.field != nullptr && target.field->type == FieldType::Boolean)
      legal = format("{} alone, or before true, false, 1 or 0", last_flag_);
    add({.what = "an argument belongs to nothing",
         .where = std::move(where),
         .why = {},
         .legal = std::move(legal)});
  }

  std::optional<std::string> value_for(const ScannedArg& arg, const std::string& legal) {
    std::optional<std::string> value = scan_.take_value(arg);
    if (!value)
      add({.what = format("{} has no value", arg.name),
           .where = format("{} on the command line", arg.name),
           .why = scan_.why_no_value(shown),
           .legal = format("{} VALUE, where VALUE is {}", arg.name, legal)});
    return value;
  }

  void no_value_wanted(const std::string& name) {
    add({.what = format("{} takes no value", name),
         .where = format("{} on the command line", name),
         .why = {},
         .legal = format("{} alone", name)});
  }

  void add(Problem problem) { findings_.problems.push_back(std::move(problem)); }

  ArgScanner scan_;
  std::span<const VerbFlag> own_;
  Findings& findings_;
  CommandLine line_;
  std::string last_flag_;
  GivenFlags given_;
};

}  // namespace

CommandLine parse_command_line(std::span<const std::string> args, std::span<const VerbFlag> own,
                               Findings& findings) {
  return Parser(args, own, findings).parse();
}

}  // namespace bev
