// The files of a tokenizer, kept beside a model under the names that other programs look for.
#pragma once

#include <filesystem>
#include <vector>

#include "text/open_tokenizer.h"

namespace bev {

struct TokenizerFile {
  std::filesystem::path path;
  std::string name;    // next to a model
  std::string text{};  // the content if there is no such file: path is empty
};

// Those of the spec that are there; none for tokenizers without files. Next to a vocab.txt
// transformers needs a tokenizer_config.json, which says whether the vocabulary is cased, and names
// its extra ids.
std::vector<TokenizerFile> tokenizer_files(const TokenizerSpec& spec);
// The number of extra ids that such a tokenizer_config.json in the folder names.
int64_t extra_ids_in(const std::filesystem::path& folder);

// Whether a file of this name beside a model belongs to a tokenizer, or says how its special ids
// are used.
bool is_tokenizer_file(std::string_view name);

// Whether the folder has a file that a vocabulary can be read from.
bool holds_vocabulary(const std::filesystem::path& folder);

// The same tokenizer with the files of the folder, where they are there.
TokenizerSpec tokenizer_in_folder(TokenizerSpec spec, const std::filesystem::path& folder);

}  // namespace bev
