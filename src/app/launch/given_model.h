// Megatron-LM's flags about a trained model, as its scripts for evaluation and generation have
// them: its folder, its shape, its tokenizer. A trained model knows its shape and its tokenizer, so
// these flags are compared with them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/cli/cli_flags.h"
#include "config/parse/field.h"
#include "infer/model_folder.h"

namespace bev::app {

class GivenModel {
 public:
  // Takes the flags that the verb does not declare. Usage error that lists those which are
  // impossible or name what this version lacks.
  GivenModel(const VerbSpec& verb, std::span<const std::string> args);

  // The arguments of the verb, in its own flags.
  const std::vector<std::string>& args() const { return args_; }
  // Flags that change nothing, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

  // Usage error that names each flag that contradicts the model.
  void require_same(const ModelFolder& folder) const;

 private:
  void take(const VerbSpec& verb, Assignment a);

  std::vector<std::string> args_, notes_;
  std::vector<Assignment> given_;  // of the model and its tokenizer
};

}  // namespace bev::app
