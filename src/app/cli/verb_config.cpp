#include "app/cli/verb_config.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "app/cli/console.h"
#include "base/check.h"
#include "base/format.h"
#include "config/parse/arg_scanner.h"
#include "config/parse/help.h"
#include "config/parse/toml.h"
#include "ops/make_device.h"

namespace bev::app {

namespace {

constexpr VerbFlag kPrintConfig{
    "--print-config", "",
    "print the whole configuration, with where each value comes from, and stop"};

std::vector<VerbFlag> all_flags(const ConfigVerb& verb) {
  std::vector<VerbFlag> flags(verb.own.begin(), verb.own.end());
  flags.push_back(kPrintConfig);
  flags.push_back(kHelpFlag);
  return flags;
}

}  // namespace

std::string help_text(const ConfigVerb& verb, size_t columns) {
  const std::string use =
      format("usage: bevatron {} [CONFIG.toml] [--section.field VALUE ...]", verb.name);
  return format("{}\n\n{}\n\nFlags of {}\n{}\n{}\n{}", wrap(use, columns, 0),
                wrap(verb.summary, columns, 0), verb.name, own_flags_help(all_flags(verb), columns),
                wrap("The configuration: each field as a flag, or as `field = value` below "
                     "`[section]` in the file. Flags win over the file, the file over the preset. "
                     "Integers may be written 1_000_000 or 1e6.",
                     columns, 0),
                fields_help(columns));
}

std::optional<LoadedConfig> config_for(const ConfigVerb& verb, std::span<const std::string> args) {
  if (std::any_of(args.begin(), args.end(), asks_for_help)) {
    if (verb.prints) fmt::print("{}", help_text(verb, text_columns()));
    return std::nullopt;
  }
  std::vector<std::string> all(args.begin(), args.end());
  if (verb.launched > 0) {
    for (const std::string& arg : args)
      BEV_CHECK(arg != "--threads" && !arg.starts_with("--threads=") && arg != "--parallel.ranks",
                Usage,
                "{}: a launcher started {} processes, and each of them is a rank; leave it out",
                arg, verb.launched);
    all.insert(all.end(), {"--parallel.ranks", format("{}", verb.launched)});
  }
  LoadedConfig loaded = load(all, all_flags(verb), verb.purpose, verb.complete, automatic_device());
  if (verb.prints)
    for (const std::string& note : loaded.notes) print_stderr("bevatron: note: {}\n", note);
  if (loaded.has(kPrintConfig.name)) {
    if (verb.prints) fmt::print("{}", print_config(loaded.config, loaded.origins));
    return std::nullopt;
  }
  return loaded;
}

void fill_required_fields(Config& config) {
  const auto otherwise = [](auto& field, auto value) {
    if (field == 0) field = value;
  };
  constexpr int64_t kAnyVocab = int64_t{1} << 28;
  otherwise(config.model.layers, 1);
  if (config.model.width == 0) config.model.width = config.model.heads = 1;
  otherwise(config.model.heads, 1);
  otherwise(config.model.vocab, kAnyVocab);
  otherwise(config.model.positions, std::max<int64_t>(1, config.train.sequence));
  // A bi-encoder compares the pairs of a micro-batch.
  otherwise(config.train.micro_batch, config.model.family == ModelFamily::Biencoder ? 2 : 1);
  if (config.train.samples == 0) otherwise(config.train.iterations, 1);
  otherwise(config.optim.lr, 1.0);
}

}  // namespace bev::app
