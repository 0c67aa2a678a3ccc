#include "config/parse/load.h"

#include <algorithm>

#include "base/check.h"
#include "config/blend.h"
#include "config/megatron/megatron_flags.h"
#include "config/megatron/megatron_scripts.h"
#include "config/parse/notation.h"
#include "config/parse/problem.h"
#include "config/parse/toml.h"
#include "config/parse/value.h"
#include "config/presets.h"
#include "config/tokenizer_config.h"

namespace bev {

namespace {

constexpr std::string_view kPresetPath = "model.preset";

void assign(LoadedConfig& loaded, const Assignment& a) {
  set_value(loaded.config, a.field->path, a.value);
  loaded.origins[a.field->path] = a.origin;
}

// A flag given again wins over the first, as everywhere on command lines. Flags that refine a value
// come last (Alias::only_from).
void assign_flags(LoadedConfig& loaded, const std::vector<Assignment>& assignments) {
  for (const Assignment& a : assignments)
    if (a.alias == nullptr || a.alias->only_from.empty()) assign(loaded, a);
  for (const Field& field : fields()) {
    for (const Alias& alias : field.about.aliases) {
      if (alias.only_from.empty()) continue;
      const auto given = std::find_if(assignments.begin(), assignments.end(),
                                      [&](const Assignment& a) { return a.alias == &alias; });
      if (given == assignments.end()) continue;
      const std::string now = plain_text(field, get_value(loaded.config, field.path));
      if (now == alias.only_from) assign(loaded, *given);
    }
  }
}

// Defaults that depend on the script of Megatron-LM.
void assign_defaults_of(const MegatronScript& script, LoadedConfig& loaded) {
  const auto assign_default = [&](std::string_view path, std::string_view value) {
    const Field* field = find_field(path);
    if (value.empty() || loaded.origins.contains(field->path)) return;
    assign(loaded, {.field = field,
                    .value = *parse_value(*field, value).value,
                    .origin = {.kind = OriginKind::Default, .text = std::string(script.name)}});
  };
  assign_default("data.tokenizer", script.tokenizer);
  assign_default("loss.average", script.average);
}

// The LM head of a BERT has the exact GELU whatever the layers have, except with this flag.
void assign_head_activation(const std::vector<Assignment>& flags, LoadedConfig& loaded) {
  const Field* field = find_field("model.head_activation");
  const Assignment* given = nullptr;
  for (const Assignment& a : flags) {
    if (a.field == field) return;
    if (a.alias != nullptr && a.alias->flag == "--openai-gelu") given = &a;
  }
  if (given == nullptr || loaded.config.model.family != ModelFamily::Bert) return;
  assign(
      loaded,
      {.field = field, .value = *parse_value(*field, "gelu-tanh").value, .origin = given->origin});
}

std::string all_preset_names() {
  std::string list;
  for (const Preset& preset : presets())
    list += format("{}{}", list.empty() ? "" : ", ", preset.name);
  return list;
}

// The preset is chosen by the last assignment to it, the command line's if there is one.
void assign_preset(LoadedConfig& loaded, const std::vector<Assignment>& file,
                   const std::vector<Assignment>& flags, Findings& findings) {
  const Assignment* chosen = nullptr;
  for (const auto* list : {&file, &flags})
    for (const Assignment& a : *list)
      if (a.field->path == kPresetPath) chosen = &a;
  if (chosen == nullptr) return;
  const std::string& name = std::get<std::string>(chosen->value);
  if (name.empty()) return;
  const Preset* preset = find_preset(name);
  if (preset == nullptr) {
    std::vector<std::string> names;
    for (const Preset& p : presets()) names.emplace_back(p.name);
    const std::string near = nearest(name, names);
    findings.problems.push_back({.what = format("there is no preset {}", toml_string(name)),
                                 .where = format("{} ({})", kPresetPath, chosen->origin.text),
                                 .why = {},
                                 .legal = near.empty() ? format("one of: {}", all_preset_names())
                                                       : format("did you mean {}?", near)});
    // Whatever is missing now, the preset would have set.
    findings.incomplete = true;
    return;
  }
  const Origin origin{.kind = OriginKind::Preset, .text = format("preset {}", name)};
  for (const PresetSetting& setting : preset->settings) {
    const Field* field = find_field(setting.field);
    BEV_CHECK(field != nullptr, Internal, "preset {} sets {}, which does not exist", name,
              setting.field);
    Parsed parsed = parse_value(*field, setting.value);
    BEV_CHECK(parsed.value.has_value(), Internal, "preset {}: {} = {}: {}", name, setting.field,
              setting.value, parsed.why);
    assign(loaded, {.field = field, .value = std::move(*parsed.value), .origin = origin});
  }
}

}  // namespace

std::string LoadedConfig::own_text(std::string_view own_flag, std::string_view otherwise) const {
  const auto found = own.find(own_flag);
  return found == own.end() ? std::string(otherwise) : found->second;
}

LoadedConfig load_unchecked(std::span<const std::string> args, std::span<const VerbFlag> own,
                            Purpose purpose, Findings& findings, CompleteConfig complete,
                            DeviceKind automatic) {
  CommandLine line = parse_command_line(args, own, findings);
  std::vector<Assignment> file;
  if (!line.file.empty()) file = read_toml(line.file, findings);

  LoadedConfig loaded;
  loaded.own = std::move(line.own);
  loaded.notes = std::move(line.notes);
  loaded.notes.insert(loaded.notes.end(), findings.notes.begin(), findings.notes.end());
  assign_preset(loaded, file, line.assignments, findings);
  for (const Assignment& a : file) assign(loaded, a);
  assign_flags(loaded, line.assignments);
  assign_head_activation(line.assignments, loaded);
  if (line.script != nullptr) assign_defaults_of(*line.script, loaded);
  if (loaded.config.device.kind == DeviceKind::Auto) loaded.config.device.kind = automatic;
  read_blend_files(loaded, findings);
  apply_tokenizer(loaded, findings);
  if (complete != nullptr) complete(loaded.config);

  for (Problem& problem : check_config(loaded.config, purpose, loaded.origins, findings))
    findings.problems.push_back(std::move(problem));
  return loaded;
}

LoadedConfig load(std::span<const std::string> args, std::span<const VerbFlag> own, Purpose purpose,
                  CompleteConfig complete, DeviceKind automatic) {
  Findings findings;
  LoadedConfig loaded = load_unchecked(args, own, purpose, findings, complete, automatic);
  throw_if_any(findings.problems);
  return loaded;
}

int64_t own_integer(const LoadedConfig& loaded, std::string_view flag, int64_t otherwise,
                    int64_t min, int64_t max) {
  if (!loaded.has(flag)) return otherwise;
  const std::string text = loaded.own_text(flag);
  const auto value = parse_integer(text);
  BEV_CHECK(value && *value >= min && *value <= max, Usage,
            "{} {}: an integer from {} to {} is wanted", flag, text, min, max);
  return *value;
}

}  // namespace bev
