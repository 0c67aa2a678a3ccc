// The part of bevatron inspect that is about token files.
#pragma once

#include <array>

#include "app/cli/tokenizer_flags.h"

namespace bev::app {

inline constexpr auto kInspectFlags = with_tokenizer_flags(std::array<OwnFlag, 6>{{
    {"--document", "N", "show documents of a token file from this one on [default: the first]"},
    {"--first", "K", "how many documents are shown [default: 1]"},
    {"--tokens", "N", "how many tokens of each [default: 16]"},
    {"--checksum", "", "SHA-256 of both files of a token file"},
    {"--json", "", "of a token file: print JSON with stable keys"},
    {"--no-norms", "", "of a checkpoint: do not read the data, only what describes them"},
}});

// `path` with or without ending. With a tokenizer documents are shown as text too.
void inspect_tokens(const std::string& path, const FlagValues& flags);

}  // namespace bev::app
