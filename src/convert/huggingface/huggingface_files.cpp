#include "convert/huggingface/huggingface_files.h"

#include "base/check.h"
#include "base/json.h"
#include "convert/array_file.h"
#include "text/tokenizer_files.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

bool is_shard_name(const std::string& name) {
  constexpr std::string_view kPattern = "model-#####-of-#####.safetensors";
  if (name.size() != kPattern.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool is_digit = name[i] >= '0' && name[i] <= '9';
    if (kPattern[i] == '#' ? !is_digit : name[i] != kPattern[i]) return false;
  }
  return true;
}

}  // namespace

std::string huggingface_shard_name(size_t number, size_t count) {
  return count == 1 ? kHuggingFaceWeights
                    : format("model-{:05d}-of-{:05d}.safetensors", number, count);
}

const std::map<std::string, std::string>& huggingface_metadata() {
  static const std::map<std::string, std::string> metadata{{"format", "pt"},
                                                           {"written_by", "bevatron"}};
  return metadata;
}

void check_huggingface_replaceable(const fs::path& dir) {
  if (!fs::exists(dir)) return;
  BEV_CHECK(fs::is_directory(dir), Data, "{} exists and is not a directory", dir.string());
  if (fs::is_empty(dir)) return;
  bool holds_weights = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    const bool is_weights = name == kHuggingFaceWeights || is_shard_name(name);
    BEV_CHECK(is_weights || name == kHuggingFaceConfig || name == kHuggingFaceIndex ||
                  is_tokenizer_file(name),
              Data, "{} is not replaced, because it holds {}, which is not an earlier output",
              dir.string(), in_quotes(name));
    if (!is_weights) continue;
    holds_weights = true;
    BEV_CHECK(ArrayFile(entry.path()).metadata() == huggingface_metadata(), Data,
              "{} is not replaced: it holds a model that this program did not write", dir.string());
  }
  BEV_CHECK(holds_weights, Data,
            "{} is not replaced: it holds a model that this program did not write", dir.string());
}

}  // namespace bev
