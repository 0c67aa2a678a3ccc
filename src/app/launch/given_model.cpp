#include "app/launch/given_model.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "app/cli/shared_flags.h"
#include "base/check.h"
#include "config/megatron/megatron_flags.h"
#include "config/parse/arg_scanner.h"
#include "config/parse/notation.h"
#include "config/parse/toml.h"
#include "config/parse/value.h"
#include "config/resolve.h"
#include "config/tokenizer_config.h"

namespace bev::app {

namespace {

bool is_long_flag(std::string_view arg) { return arg.size() > 2 && arg.starts_with("--"); }

// A Megatron-LM flag and the flag of a verb with the same meaning. Empty `verb`: every
// verb. Empty `own`: the model is named without a flag.
struct Renamed {
  std::string_view verb, megatron, own{};
  std::string_view value{};  // what the flag stands for, where it takes none itself
};

constexpr Renamed kRenamed[] = {
    {"", "--load"},
    {"eval", "--model-path"},
    {"", "--model-parallel-size", "--tensor"},
    {"eval", "--micro-batch-size", "--batch"},
    {"eval", "--batch-size", "--batch"},
    {"eval", "--seq-length", "--length"},
    {"eval", "--data-path", "--text"},
    {"eval", "--cloze-eval", "--task", "lambada"},
    {"generate", "--seq-length", "--context"},
    {"serve", "--seq-length", "--context"},
};

// Megatron-LM flags that change nothing in a verb; empty `verb`: in every verb.
struct Needless {
  std::string_view verb, megatron, why;
};

constexpr Needless kNeedless[] = {
    {"", "--use-checkpoint-args", "the shape is always that of the checkpoint"},
    {"", "--use-mp-args-from-checkpoint-args", "a checkpoint of any layout is read in any other"},
    {"serve", "--temperature", "each request says it"},
    {"serve", "--top_p", "each request says it"},
    {"serve", "--top_k", "each request says it"},
    {"serve", "--out-seq-length", "each request says it"},
    {"serve", "--greedy", "each request says it"},
};

// Fields that say which tokenizer it is.
constexpr std::string_view kTokenizerFields[] = {
    "data.tokenizer",       "data.vocab_file", "data.merge_file",        "data.tokenizer_model",
    "data.vocab_extra_ids", "data.eod",        "data.tokenizer_template"};

// How many values may follow a flag of the configuration or of Megatron-LM; empty: it is neither.
std::optional<size_t> count_values(std::string_view name, std::span<const std::string> rest) {
  const auto of_field = [&](const Field& field, std::string_view sets) -> size_t {
    if (field.type == FieldType::Boolean) return !rest.empty() && parse_boolean(rest.front());
    return !sets.empty() ? 0 : field.type == FieldType::List ? SIZE_MAX : 1;
  };
  for (const Field& field : fields()) {
    if (name.substr(2) == field.path) return of_field(field, "");
    for (const Alias& alias : field.about.aliases)
      if (alias.flag == name) return alias.part > 0 ? 3 : of_field(field, alias.sets);
  }
  const KnownFlag known = find_megatron_flag(name);
  return known.flag == nullptr ? std::nullopt : std::optional(value_count(*known.flag).most);
}

// Fields that only training reads.
bool is_of_training(std::string_view path) {
  return path == "model.hidden_dropout" || path == "model.attention_dropout" ||
         path == "model.init_std" || path == "model.deep_init" || path == "model.vocab_multiple";
}

// A derived number is the same as the one that it stands for.
bool same_shape(const Config& a, const Config& b, std::string_view path) {
  if (get_value(a, path) == get_value(b, path)) return true;
  if (path == "model.kv_heads") return resolve_model(a).kv_heads == resolve_model(b).kv_heads;
  if (path == "model.head_dim") return resolve_model(a).head_dim == resolve_model(b).head_dim;
  return path == "model.ffn" && resolve_model(a).ffn == resolve_model(b).ffn;
}

bool same_tokens(const Tokenizer& a, const Tokenizer& b) {
  if (a.vocab_size() != b.vocab_size()) return false;
  for (int32_t id = 0; id < a.vocab_size(); ++id)
    if (a.token_name(id) != b.token_name(id)) return false;
  return true;
}

}  // namespace

GivenModel::GivenModel(const VerbSpec& verb, std::span<const std::string> args) {
  std::vector<std::string> model;
  const auto pass = [&](const Renamed& renamed, const std::string& arg, const std::string& name) {
    if (!renamed.own.empty()) args_.emplace_back(renamed.own);
    if (!renamed.value.empty()) args_.emplace_back(renamed.value);
    if (arg.size() > name.size()) args_.push_back(arg.substr(name.size() + 1));
  };
  ArgScanner scan(args, is_long_flag);
  while (!scan.rest().empty()) {
    const std::string arg = scan.take(), name = arg.substr(0, arg.find('='));
    if (arg == "--") {
      args_.push_back(arg);
      args_.insert(args_.end(), scan.rest().begin(), scan.rest().end());
      break;
    }
    const auto* renamed = std::ranges::find_if(kRenamed, [&](const Renamed& r) {
      return (r.verb.empty() || r.verb == verb.name) && r.megatron == name;
    });
    const bool is_own = !is_long_flag(arg) || find_flag(verb.flags, name) != nullptr;
    const auto values = is_own ? std::nullopt : count_values(name, scan.rest());
    if (!is_own && renamed != std::end(kRenamed)) {
      pass(*renamed, arg, name);
    } else if (!values) {
      args_.push_back(arg);
    } else {
      const auto* needless = std::ranges::find_if(kNeedless, [&](const Needless& n) {
        return (n.verb.empty() || n.verb == verb.name) && n.megatron == name;
      });
      const bool counts = needless == std::end(kNeedless);
      if (!counts)
        notes_.push_back(format("{} is accepted and changes nothing: {}", name, needless->why));
      if (counts) model.push_back(arg);
      if (arg.size() > name.size()) continue;
      for (std::string& value : scan.take_values(*values))
        if (counts) model.push_back(std::move(value));
    }
  }
  Findings findings;
  CommandLine line = parse_command_line(model, {}, findings);
  throw_if_any(findings.problems, "the arguments");
  notes_.insert(notes_.end(), line.notes.begin(), line.notes.end());
  for (Assignment& a : line.assignments) take(verb, std::move(a));
}

void GivenModel::take(const VerbSpec& verb, Assignment a) {
  const std::string& path = a.field->path;
  const bool names_device = std::ranges::count(args_, kDeviceFlag.name) > 0;
  if (path == "device.precision" && (names_device || automatic_device() == DeviceKind::Cuda)) {
    args_.insert(args_.end(), {std::string(kPrecisionFlag.name), plain_text(*a.field, a.value)});
  } else if (path == "device.precision") {
    notes_.push_back(format(
        "{} is accepted and changes nothing: without a GPU the precision is f32", a.origin.text));
  } else if ((path.starts_with("model.") && !is_of_training(path)) ||
             std::ranges::count(kTokenizerFields, path) > 0) {
    given_.push_back(std::move(a));
  } else {
    notes_.push_back(
        format("{} is accepted and changes nothing: {} does not train", a.origin.text, verb.name));
  }
}

void GivenModel::require_same(const ModelFolder& folder) const {
  std::string list;
  Config tokens;
  for (const Assignment& a : given_) {
    const std::string& path = a.field->path;
    Config given = folder.config;
    set_value(path.starts_with("data.") ? tokens : given, path, a.value);
    if (!same_shape(given, folder.config, path))
      list += format("\n  {} {}: its {} is {}", a.origin.text, plain_text(*a.field, a.value), path,
                     plain_text(*a.field, get_value(folder.config, path)));
  }
  const std::unique_ptr<Tokenizer> given = tokenizer_of(tokens);
  const std::unique_ptr<Tokenizer> own = given != nullptr ? tokenizer_of(folder.config) : nullptr;
  if (own != nullptr && !same_tokens(*given, *own))
    list += format("\n  --tokenizer-type {}: its {} tokens are not those of the model's tokenizer",
                   name_of_choice(tokens.data.tokenizer), given->vocab_size());
  BEV_CHECK(list.empty(), Usage,
            "{} holds another model than the flags describe:{}\n"
            "leave out the flags, or name the model that they describe",
            folder.weights.string(), list);
}

}  // namespace bev::app
