// The sub-commands, one file each.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bev::app {

int train(std::span<const std::string> args);
// train --dry-run for a job of `ranks` ranks, `local_ranks` on each machine. Starts nothing.
int train_dry_run(std::span<const std::string> args, int ranks, int local_ranks);
int status(std::span<const std::string> args);
int launch(std::span<const std::string> args);
int tokenize(std::span<const std::string> args);
int detokenize(std::span<const std::string> args);
int preprocess(std::span<const std::string> args);
int merge(std::span<const std::string> args);
int eval(std::span<const std::string> args);
int generate(std::span<const std::string> args);
int embed(std::span<const std::string> args);
int serve(std::span<const std::string> args);
int convert(std::span<const std::string> args);
int inspect(std::span<const std::string> args);
int checkpoint(std::span<const std::string> args);
int diff(std::span<const std::string> args);
int plot(std::span<const std::string> args);
int plan(std::span<const std::string> args);
int verify(std::span<const std::string> args);
int bench(std::span<const std::string> args);
int doctor(std::span<const std::string> args);
int tokenizer(std::span<const std::string> args);
int corpus(std::span<const std::string> args);
int version(std::span<const std::string> args);

// A sub-command of the program.

struct Verb {
  std::string_view name;
  std::string_view summary;  // one line of the overview
  // Gets the arguments after the verb and returns the exit code. Throws Error; main prints it.
  int (*run)(std::span<const std::string> args);
  std::string_view parts{};  // words of which one must follow, with blanks between
};

}  // namespace bev::app
