// The arguments of a verb that needs no configuration: the flags it declares, and what stands
// between them. --help is generated from the declaration.
//
//   --flag VALUE, --flag=VALUE    a flag given again wins over the first
//   --flag A B C                  where the declared value ends with " ...": up to the next flag
//   --flag, --flag 5              where it is declared as [N]: may stand alone, a number belongs to
//   it
//   -                             a positional argument: by convention stdin or stdout
//   --                            everything behind it is positional
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/parse/command_line.h"

namespace bev::app {

struct VerbSpec {
  std::string_view name;            // "corpus"
  std::string_view summary;         // what it does, a sentence or two
  std::span<const VerbFlag> flags;  // --help is added
  std::string_view positional{};    // in the usage line, "FILE ..."; empty: there are none
  size_t min_positional = 0;
  size_t max_positional = 0;
};

// The values that were given. The typed questions throw one Usage error that names the flag, says
// why its value is refused and what is legal. Asking for a flag that the verb does not declare, or
// for the value of one that takes none, is an Internal error.
class FlagValues {
 public:
  // Everything wrong with the arguments is one Usage error; an unknown flag names the nearest.
  // REQUIRES: `verb.flags` outlives this.
  FlagValues(const VerbSpec& verb, std::span<const std::string> args);

  bool has(std::string_view flag) const;
  const std::vector<std::string>& positional() const { return positional_; }

  // The value, or `otherwise` when the flag was not given.
  std::string text(std::string_view flag, std::string_view otherwise = "") const;
  // The same of a file or directory: an empty value is refused too.
  std::string path(std::string_view flag, std::string_view otherwise = "") const;
  // All values of a flag whose declared value ends with " ...".
  std::vector<std::string> texts(std::string_view flag) const;
  int64_t integer(std::string_view flag, int64_t otherwise, int64_t min, int64_t max) const;
  double real(std::string_view flag, double otherwise, double min, double max) const;
  // With a suffix: "100K", "64Ki" (config/parse/value.h).
  int64_t size(std::string_view flag, int64_t otherwise, int64_t min, int64_t max) const;
  // The index into `names`.
  size_t choice(std::string_view flag, size_t otherwise,
                std::span<const std::string_view> names) const;

  // Refuses two flags that exclude each other.
  void require_not_both(std::string_view a, std::string_view b) const;
  // Refuses `flag` without `needed`.
  void require_with(std::string_view flag, std::string_view needed) const;

 private:
  const VerbFlag& declared(std::string_view flag) const;
  const std::string* value_of(std::string_view flag) const;

  std::span<const VerbFlag> flags_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positional_;
};

// The arguments of the verb. Empty when --help or -h asked for the help: it has been printed, where
// this process `prints`, and the verb is done.
std::optional<FlagValues> flags_for(const VerbSpec& verb, std::span<const std::string> args,
                                    bool prints = true);

// What --help prints.
std::string help_text(const VerbSpec& verb, size_t columns);

}  // namespace bev::app
