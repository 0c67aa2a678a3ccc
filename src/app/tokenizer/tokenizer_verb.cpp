// bevatron tokenizer: makes vocabularies and says what they hold and how well they fit a text.
#include <array>

#include "app/cli/dispatch.h"
#include "app/cli/verbs.h"
#include "app/tokenizer/tokenizer_verbs.h"

namespace bev::app {

namespace {

constexpr std::array kTokenizerParts{
    Verb{"train", "learn a vocabulary from text files", tokenizer_train},
    Verb{"info", "what a vocabulary holds", tokenizer_info},
    Verb{"eval", "how well a vocabulary fits texts", tokenizer_eval},
};

}  // namespace

int tokenizer(std::span<const std::string> args) {
  return run_part({.name = "tokenizer",
                   .parts = kTokenizerParts,
                   .arguments = "[--flag VALUE ...]",
                   .footer = "`bevatron tokenizer train --help` explains its flags\n"},
                  args);
}

}  // namespace bev::app
