#include "config/megatron/megatron_scripts.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"

namespace bev {

namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "python", "python3", "python3.11".
bool is_python(std::string_view word) {
  const std::string_view name = file_name(word);
  return name.starts_with("python") &&
         name.find_first_not_of("0123456789.", std::string_view("python").size()) ==
             std::string_view::npos;
}

bool is_launcher_module(std::string_view name) {
  return name == "torch.distributed.run" || name == "torch.distributed.launch" ||
         name == "torch.distributed.elastic.run";
}

constexpr MegatronScript kScripts[] = {
    {.name = "evaluate_gpt2.py", .verb = "eval"},
    {.name = "generate_samples_gpt.py", .verb = "generate"},
    {.name = "generate_samples_gpt2.py", .verb = "generate"},
    {.name = "main.py", .verb = "eval"},  // tasks/main.py
    {.name = "merge_datasets.py", .verb = "merge"},
    {.name = "preprocess_data.py", .verb = "preprocess"},
    // Its masked tokens differ in number from one micro-batch to the next.
    {.name = "pretrain_bert.py",
     .verb = "train",
     .family = "bert",
     .tokenizer = "bert-lower",
     .average = "micro-batch"},
    {.name = "pretrain_gpt.py", .verb = "train", .family = "gpt", .tokenizer = "gpt2"},
    {.name = "pretrain_gpt2.py", .verb = "train", .family = "gpt", .tokenizer = "gpt2"},
    {.name = "pretrain_gpt_core.py", .verb = "train", .family = "gpt", .tokenizer = "gpt2"},
    {.name = "pretrain_hybrid.py", .verb = "train"},
    {.name = "pretrain_ict.py", .verb = "train", .family = "biencoder", .tokenizer = "bert-lower"},
    {.name = "pretrain_mamba.py", .verb = "train"},
    {.name = "pretrain_realm.py", .verb = "train"},
    {.name = "pretrain_retro.py", .verb = "train"},
    {.name = "pretrain_t5.py",
     .verb = "train",
     .family = "t5",
     .tokenizer = "bert-lower",
     .average = "micro-batch"},
    {.name = "pretrain_t5_core.py",
     .verb = "train",
     .family = "t5",
     .tokenizer = "bert-lower",
     .average = "micro-batch"},
    {.name = "pretrain_vision_classify.py", .verb = "train"},
    {.name = "pretrain_vision_dino.py", .verb = "train"},
    {.name = "pretrain_vision_inpaint.py", .verb = "train"},
    {.name = "pretrain_vit.py", .verb = "train"},
    {.name = "pretrain_vlm.py", .verb = "train"},
    {.name = "run_gpt2_eval.py", .verb = "eval", .task = "wikitext"},
    {.name = "run_text_generation_server.py", .verb = "serve"},
};

bool does_work_of_scripts(std::string_view verb) {
  return std::ranges::find(kScripts, verb, &MegatronScript::verb) != std::end(kScripts);
}

}  // namespace

const MegatronScript* find_megatron_script(std::string_view path) {
  const auto* found = std::ranges::find(kScripts, file_name(path), &MegatronScript::name);
  // Many projects have a main.py.
  const bool is_other = path.ends_with("main.py") && !path.ends_with("tasks/main.py");
  return found == std::end(kScripts) || is_other ? nullptr : found;
}

ScriptPrefix script_prefix(std::span<const std::string> args) {
  if (args.empty()) return {};
  if (file_name(args[0]) == "torchrun") return {.words = 1, .launches = true};
  if (!is_python(args[0])) return {};
  size_t words = 1;
  while (words < args.size() && args[words].starts_with('-') && args[words] != "-m") ++words;
  if (words + 1 >= args.size() || args[words] != "-m") return {.words = words};
  if (!is_launcher_module(args[words + 1])) return {.words = words + 1};
  return {.words = words + 2, .launches = true};
}

std::vector<std::string> as_own_command(std::span<const std::string> args) {
  std::vector<std::string> command(args.begin(), args.end());
  if (args.empty()) return command;
  const bool names_verb = script_prefix(args).words == 0 && !args[0].ends_with(".py");
  const std::string verb = names_verb ? args[0] : "";
  if (names_verb && verb != "launch" && !does_work_of_scripts(verb)) return command;
  const std::span<const std::string> words = args.subspan(names_verb ? 1 : 0);
  const ScriptPrefix prefix = script_prefix(words);
  const std::span<const std::string> rest = words.subspan(prefix.words);
  if (prefix.launches) {
    command.assign(rest.begin(), rest.end());
    command.insert(command.begin(), "launch");
    return command;
  }
  const MegatronScript* script = rest.empty() ? nullptr : find_megatron_script(rest[0]);
  if (verb == "launch" || (script == nullptr && names_verb && prefix.words == 0)) return command;
  BEV_CHECK(script != nullptr, Usage,
            "{} is a script of Python, and not one of Megatron-LM's that bevatron knows\n"
            "use a verb (bevatron help) or pretrain_gpt.py, preprocess_data.py ...; other scripts "
            "need PyTorch",
            rest.empty() ? args[0] : rest[0].substr(0, 200));
  BEV_CHECK(!names_verb || verb == script->verb, Usage,
            "{} is not for bevatron {}\nuse bevatron {} {} ...", script->name, verb, script->verb,
            script->name);
  const bool is_read_by_verb = script->verb == "train";
  command.assign(rest.begin() + (is_read_by_verb ? 0 : 1), rest.end());
  if (!script->task.empty()) command.insert(command.begin(), {"--task", std::string(script->task)});
  command.insert(command.begin(), std::string(script->verb));
  return command;
}

}  // namespace bev
