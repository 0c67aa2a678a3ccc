// The parts of bevatron inspect, one for each kind of file.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "app/cli/shared_flags.h"

namespace bev::app {

inline constexpr auto kInspectFlags = with_tokenizer_flags(std::array<VerbFlag, 6>{{
    {"--document", "N", "show documents of a token file from this one on [default: the first]"},
    {"--first", "K", "how many documents are shown [default: 1]"},
    {"--tokens", "N", "how many tokens of each [default: 16]"},
    {"--checksum", "", "SHA-256 of both files of a token file"},
    {"--json", "", "of a token file: print JSON with stable keys"},
    {"--no-norms", "", "of a checkpoint: do not read the data, only what describes them"},
}});

// A line of the report: a name and what it has.
void print_row(std::string_view name, const std::string& value);

// `path` with or without ending. With a tokenizer documents are shown as text too.
void inspect_tokens(const std::string& path, const FlagValues& flags);

// Says what one checkpoint holds; of a folder of checkpoints or a run lists them first and takes
// the newest good one. With norms all data are read and checked.
void inspect_checkpoint(const std::filesystem::path& path, bool with_norms);

// bevatron inspect samples: what a training will see.
int inspect_samples(std::span<const std::string> args);

}  // namespace bev::app
