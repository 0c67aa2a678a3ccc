// A small vocabulary for tests: the 256 bytes, one token for each merge, and <|endoftext|>.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/bpe/bpe_vocab.h"

namespace bev::test {

// Pairs of bytes as the files spell them, in the order in which they merge.
using TinyMerges = std::vector<std::pair<std::string, std::string>>;

// The contents of vocab.json and merges.txt. Ids: the bytes by value, then the merges in order (one
// whose result is a token already adds none), then <|endoftext|>.
struct TinyFiles {
  std::string vocab, merges;
};
TinyFiles tiny_files(const TinyMerges& merges);

std::shared_ptr<const BpeVocab> tiny_vocab(const TinyMerges& merges);

}  // namespace bev::test
