// Scripts of Megatron-LM and the words before them on a command line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// A script of Megatron-LM, and what does its work here.
struct MegatronScript {
  std::string_view name;      // "pretrain_bert.py"
  std::string_view verb{};    // of this program; empty: nothing does its work
  std::string_view family{};  // train: of model.family; empty: not in this version
  // Values of data.tokenizer and loss.average unless the user sets them; empty: the fields' own.
  std::string_view tokenizer{};
  std::string_view average{};
  std::string_view task{};  // eval: of --task, unless the user sets it
};

// By a path of the script. Null: not one of Megatron-LM's.
const MegatronScript* find_megatron_script(std::string_view path);

// The words before a script: an interpreter, a launcher of PyTorch, or neither.
struct ScriptPrefix {
  size_t words = 0;       // 4 for "python -u -m torch.distributed.run"
  bool launches = false;  // several processes; its flags follow
};
ScriptPrefix script_prefix(std::span<const std::string> args);

// A command line that starts with a script or with the words before one, as one of this program:
// `torchrun FLAGS SCRIPT ...` becomes `launch FLAGS SCRIPT ...`, and `python SCRIPT ...` the verb
// of the script, followed by the script if the verb is train. They may already follow a verb. Other
// command lines come back as they are. Usage error for a script that nothing here stands for.
std::vector<std::string> as_own_command(std::span<const std::string> args);

}  // namespace bev
