// Megatron's options: every one is known here, with its default, and in the class it says.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/format.h"
#include "base/json.h"
#include "config/megatron/megatron_flags.h"
#include "config/parse/field.h"
#include "config/parse/load.h"
#include "config/parse/problem.h"
#include "config/parse/value.h"
#include "golden_runner/cases.h"

namespace bev::golden {

namespace {

using Args = std::vector<std::string>;

// Defaults of today's Megatron-LM that are not ours, and why.
const std::map<std::string_view, std::string_view> kOtherDefaults{
    {"--num-query-groups", "1 counts only with --group-query-attention; ours is all heads"},
    {"--eval-interval", "none; ours is that of all versions before"},
    {"--split", "none; with --data-path alone it becomes ours"},
    {"--dataloader-type", "none; it becomes single"},
    {"--recompute-method", "none, which full recomputation refuses; ours takes all blocks"},
    {"--async-save", "off; ours writes while the training goes on"},
    {"--check-for-spiky-loss", "off; ours looks for spikes and logs them"},
    {"--calculate-per-token-loss", "off; ours is on except with pretrain_bert.py"},
    {"--data-parallel-sharding-strategy", "counts only with --use-megatron-fsdp"},
};
// Defaults of the first version that would ask for something missing.
const std::set<std::string_view> kOldDefaults{"--tokenizer-type"};

// Options whose legal values do not follow from their type.
const std::map<std::string_view, Args> kOtherValues{
    {"--window-size", {"127,0"}},
    {"--split", {"9,1,0"}},
    {"--rampup-batch-size", {"2", "2", "100"}},
    {"--rope-scaling-factor", {"4"}},
    {"--warmup", {"0.25"}},  // an integer in the versions that only refuse it
    {"--data-impl", {"lazy"}},
    {"--distributed-backend", {"gloo"}},
};

struct Outcome {
  CommandLine line;
  Findings findings;
};

Outcome parse(const Args& args) {
  Outcome outcome;
  outcome.line = parse_command_line(args, {}, outcome.findings);
  return outcome;
}

struct Target {
  const Field* field = nullptr;
  const Alias* alias = nullptr;
};

Target find_alias(std::string_view name) {
  for (const Field& field : fields())
    for (const Alias& alias : field.about.aliases)
      if (alias.flag == name) return {&field, &alias};
  return {};
}

bool is_switch(const Json& option) { return option.at("action") != "Store"; }

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The values of a default; empty when it has none.
Args default_values(const Json& option) {
  const Json& value = option.at("default");
  if (is_switch(option) || value.is_null()) return {};
  Args values;
  if (value.is_array()) {
    for (const Json& entry : value) values.push_back(text_of(entry));
  } else {
    values.push_back(text_of(value));
  }
  return values;
}

// As many values as the option takes, none of them the default.
Args other_values(const Json& option, const std::string& name) {
  if (is_switch(option)) return {};
  if (const auto chosen = kOtherValues.find(name); chosen != kOtherValues.end())
    return chosen->second;
  const Args defaults = default_values(option);
  std::string value = "something";
  const std::string type =
      option.at("type").is_string() ? option.at("type").get<std::string>() : "";
  if (option.contains("choices")) {
    for (const Json& choice : option.at("choices"))
      if (defaults.empty() || text_of(choice) != defaults[0]) value = text_of(choice);
  } else if (type == "int") {
    value = defaults == Args{"3"} ? "4" : "3";
  } else if (type == "float") {
    value = defaults == Args{"0.25"} ? "0.5" : "0.25";
  } else if (type == "bool") {
    value = "true";
  }
  const bool several = option.contains("nargs") && option.at("nargs").is_number();
  return Args(several ? option.at("nargs").get<size_t>() : 1, value);
}

// One version's options. Failures are kept, one line each.
class Walk {
 public:
  explicit Walk(bool today) : today_(today) {}

  void option(const Json& entry) {
    for (const Json& name : entry.at("options")) one(name.get<std::string>(), entry);
  }

  // An option of which only the name is known.
  void name_only(const std::string& name) {
    ++options_;
    const KnownFlag known = find_megatron_flag(name);
    if (find_alias(name).field != nullptr) {
      ++implemented_;
    } else if (known.flag == nullptr) {
      unknown(name);
    } else {
      ++(known.topic->kind == FlagClass::Later ? later_ : noted_);
    }
  }

  void fail(const std::string& what) { failures_.push_back(what); }

  void report(const std::string& name, Report& report) const {
    for (const std::string& failure : failures_) report.fail(name, kHost, failure);
    const std::string counts =
        format("{}: {} options: {} implemented, {} refused unless default, {} noted, {} unknown",
               name, options_, implemented_, later_, noted_, unknown_);
    report.check(counts, kHost, static_cast<double>(failures_.size()), 0);
  }

 private:
  void one(const std::string& name, const Json& entry) {
    ++options_;
    if (const Target target = find_alias(name); target.field != nullptr) {
      ++implemented_;
      implemented(name, entry, target);
      return;
    }
    const KnownFlag known = find_megatron_flag(name);
    if (known.flag == nullptr) return unknown(name);
    if (known.topic->kind == FlagClass::Later) {
      ++later_;
      later(name, entry, *known.flag);
    } else {
      ++noted_;
      noted(name, entry);
    }
  }

  void unknown(const std::string& name) {
    ++unknown_;
    fail(format("{} is unknown", name));
  }

  void implemented(const std::string& name, const Json& entry, const Target& target) {
    const Args standard = default_values(entry);
    // A default below our range means that a value must be given; Megatron's 0 means the same.
    if (!standard.empty() && kOldDefaults.count(name) == 0) expect_set(name, standard);
    expect_set(name, other_values(entry, name));
    if (today_) same_default(name, entry, target, standard);
    if (!entry.contains("choices")) return;
    for (const Json& choice : entry.at("choices")) expect_set(name, {text_of(choice)});
  }

  // Either it sets its field, or it is refused as missing in this version, by name.
  void expect_set(const std::string& name, const Args& values) {
    Args args{name};
    args.insert(args.end(), values.begin(), values.end());
    const Outcome outcome = parse(args);
    const std::vector<Problem>& problems = outcome.findings.problems;
    const bool later = problems.size() == 1 && problems[0].what.starts_with(name) &&
                       problems[0].what.find("does not work in this version") != std::string::npos;
    const bool ignored = problems.empty() && (name == "--num-query-groups" ||
                                              name == "--data-parallel-sharding-strategy");
    const bool set = problems.empty() && !outcome.line.assignments.empty();
    if (!later && !set && !ignored)
      fail(format("{} {}: {}", name, values.empty() ? "" : values[0],
                  problems.empty() ? "sets nothing" : problems[0].what + ", " + problems[0].why));
  }

  void same_default(const std::string& name, const Json& entry, const Target& target,
                    const Args& standard) {
    if (kOtherDefaults.count(name) > 0) return;
    const Field& field = *target.field;
    if (is_switch(entry)) {
      // A switch that set the default would be no switch.
      if (!target.alias->sets.empty() && target.alias->only_from.empty() &&
          plain_text(field, field.standard) == target.alias->sets)
        fail(format("{} sets {} to its default", name, field.path));
      return;
    }
    // None: derived, or to be given. Ours says so by a value that means it.
    if (standard.empty()) return none_means_none(name, field);
    const Parsed theirs = parse_value(field, standard[0], target.alias);
    if (!theirs.value || *theirs.value != field.standard)
      fail(format("the default of {} is {}, ours of {} is {}", name, standard[0], field.path,
                  plain_text(field, field.standard)));
  }

  void none_means_none(const std::string& name, const Field& field) {
    const Value& ours = field.standard;
    const auto* integer = std::get_if<int64_t>(&ours);
    const auto* real = std::get_if<double>(&ours);
    const auto* text = std::get_if<std::string>(&ours);
    const auto* list = std::get_if<TextList>(&ours);
    const auto* choice = std::get_if<Choice>(&ours);
    // Without virtual stages a pipeline rank has one stage.
    const int64_t nothing = field.path == "parallel.chunks" ? 1 : 0;
    const bool none = (integer != nullptr && *integer <= nothing) ||
                      (real != nullptr && *real <= 0) || (text != nullptr && text->empty()) ||
                      (list != nullptr && list->empty()) ||
                      (choice != nullptr && field.choices[choice->index] == "none");
    // The old names of fields that have one: the new name's default counts.
    const bool renamed = field.about.aliases.size() > 1 && field.about.aliases[0].flag != name;
    if (!none && !renamed)
      fail(
          format("{} has no default, ours of {} is {}", name, field.path, plain_text(field, ours)));
  }

  void later(const std::string& name, const Json& entry, const MegatronFlag& flag) {
    Args standard = default_values(entry);
    if (!standard.empty() && kOldDefaults.count(name) == 0) {
      standard.insert(standard.begin(), name);
      const Outcome fine = parse(standard);
      if (!fine.findings.problems.empty() || !fine.line.notes.empty())
        fail(format("{} with its default {} is not accepted", name, standard[1]));
    }
    if (flag.takes == "off") return;
    Args args = other_values(entry, name);
    args.insert(args.begin(), name);
    const Outcome refused = parse(args);
    const std::vector<Problem>& problems = refused.findings.problems;
    if (problems.size() != 1 || !problems[0].what.starts_with(name) ||
        problems[0].what.find("in this version") == std::string::npos)
      fail(format("{} {} is not refused by name", name, args.size() > 1 ? args[1] : ""));
  }

  void noted(const std::string& name, const Json& entry) {
    for (const Args& values : {default_values(entry), other_values(entry, name)}) {
      if (values.empty() && !is_switch(entry)) continue;
      Args args{name};
      args.insert(args.end(), values.begin(), values.end());
      const Outcome outcome = parse(args);
      if (!outcome.findings.problems.empty() || outcome.line.notes.size() != 1)
        fail(format("{} {} gives {} problems and {} notes", name, values.empty() ? "" : values[0],
                    outcome.findings.problems.size(), outcome.line.notes.size()));
    }
  }

  bool today_;
  int options_ = 0, implemented_ = 0, later_ = 0, noted_ = 0, unknown_ = 0;
  std::vector<std::string> failures_;
};

// What the documents write that is an option of no version: other programs', wishes, misspellings.
bool is_no_option(const Json& entry) {
  if (entry.contains("program")) return true;
  const std::string note = entry.value("note", "");
  return entry.at("defined_in").empty() && note.find("option of ") != 0 &&
         note.find("an option of ") != 0;
}

void run_legacy(const Json& file, const std::string& name, Report& report) {
  Walk walk(false);
  for (const Json& entry : file.at("not_in_main")) {
    const auto option = entry.at("option").get<std::string>();
    if (!is_no_option(entry)) {
      walk.name_only(option);
    } else if (!entry.contains("program") && parse({option}).findings.problems.size() != 1) {
      walk.fail(option + " is no option, but accepted");
    }
  }
  for (const auto& [option, documents] : file.at("in_main").items()) walk.name_only(option);
  // Refused by Megatron with a hint at the new name; here they do what they once did.
  for (const auto& [option, instead] : file.at("parsed_but_refused_by_main").items())
    if (find_alias(option).field == nullptr) walk.fail(option + " sets nothing");
  walk.report(name, report);
}

}  // namespace

void run_flags(const std::filesystem::path& file, const std::string& name, Report& report) {
  const Json flags = read_json(file.string());
  if (flags.contains("not_in_main")) return run_legacy(flags, name, report);
  Walk walk(file.filename() == "flags.json");
  for (const Json& entry : flags.at("arguments")) walk.option(entry);
  walk.report(name, report);
  int tools = 0;
  for (const auto& [tool, options] : flags.at("tools").items())
    tools += static_cast<int>(options.size());
  if (tools > 0)
    report.skip(name, format("{} options of tools are not those of a training", tools));
}

}  // namespace bev::golden
