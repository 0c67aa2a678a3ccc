#include "convert/huggingface/huggingface_weights.h"

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "convert/huggingface/huggingface.h"
#include "convert/huggingface/huggingface_names.h"

namespace bev {

namespace fs = std::filesystem;

HuggingFaceWeights::HuggingFaceWeights(const fs::path& dir, MissingHeads heads)
    : dir_(dir), heads_(heads), description_(read_huggingface_config(dir)) {
  if (fs::exists(dir / kHuggingFaceWeights)) {
    add_file(kHuggingFaceWeights);
  } else if (fs::exists(dir / kHuggingFaceIndex)) {
    add_shards();
  } else {
    const bool pickled =
        fs::exists(dir / "pytorch_model.bin") || fs::exists(dir / "pytorch_model.bin.index.json");
    throw Error(
        ErrorKind::Data,
        format("{} holds neither {} nor {}{}", dir.string(), kHuggingFaceWeights, kHuggingFaceIndex,
               pickled ? "; its pytorch_model.bin must be converted to safetensors first" : ""));
  }
}

void HuggingFaceWeights::add_file(const std::string& file) {
  const ArrayFile& opened = files_.emplace_back(dir_ / file);
  for (const StoredTensor& array : opened.arrays()) {
    const auto [place, is_new] = arrays_.emplace(array.name, Found{&opened, &array});
    BEV_CHECK(is_new, Data, "{}: {} stands in {} and in {}", dir_.string(), in_quotes(array.name),
              place->second.file->path().filename().string(), file);
  }
}

void HuggingFaceWeights::add_shards() {
  const std::string source = (dir_ / kHuggingFaceIndex).string();
  const Json index = read_json(dir_ / kHuggingFaceIndex);
  BEV_CHECK(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
            Data, "{}: there is no object weight_map", source);
  const Json& weight_map = index["weight_map"];
  std::set<std::string> shards;
  for (const auto& [name, shard] : weight_map.items()) {
    // A shard lies in the directory itself; a path would read any file of the machine.
    BEV_CHECK(shard.is_string() && is_plain_file_name(shard.get_ref<const std::string&>()), Data,
              "{}: the shard of {} is not a file name", source, in_quotes(name));
    shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) add_file(shard);
  for (const auto& [name, shard] : weight_map.items()) {
    const auto found = arrays_.find(name);
    BEV_CHECK(found != arrays_.end() &&
                  found->second.file->path().filename() == shard.get_ref<const std::string&>(),
              Data, "{}: {} is not in {}", source, in_quotes(name),
              in_quotes(shard.get_ref<const std::string&>()));
  }
}

HuggingFaceWeights::Found HuggingFaceWeights::find(const std::string& name) {
  for (const std::string& candidate : huggingface_spellings(name)) {
    const auto found = arrays_.find(candidate);
    if (found == arrays_.end()) continue;
    used_.insert(candidate);
    return found->second;
  }
  return {};
}

HuggingFaceWeights::Found HuggingFaceWeights::get(const std::string& name) {
  const Found found = find(name);
  BEV_CHECK(found.array != nullptr, Data, "{}: there is no tensor {}", dir_.string(),
            in_quotes(name));
  return found;
}

std::vector<ArrayPatch> HuggingFaceWeights::patches(const ParamSpec& spec) {
  std::vector<ArrayPatch> result;
  const int64_t columns = whole_of(spec.shape).columns;
  for (const HuggingFaceTensor& tensor : huggingface_tensors(description_.family, spec)) {
    if (lacks(spec)) {
      BEV_CHECK(
          heads_ == MissingHeads::Zeros, Data,
          "{}: config.json says BertModel, which stores no {}; expected BertForPreTraining or "
          "BertForMaskedLM with their heads (`bevatron embed` needs none)",
          dir_.string(), tensor.name);
      const Found table = get("bert.embeddings.word_embeddings.weight");
      result.push_back({.where = {.columns = columns}, .file = table.file, .array = table.array});
      continue;
    }
    const Found found = get(tensor.name);
    const Shape expected = huggingface_shape(tensor, spec, description_.model.vocab);
    BEV_CHECK(found.array->shape == expected, Data, "{}: {} is {}, the model has {}",
              found.file->path().string(), in_quotes(found.array->name),
              to_string(found.array->shape), to_string(expected));
    result.push_back({.where = {.row = tensor.row_begin,
                                .rows = tensor.vocabulary ? description_.model.vocab : tensor.rows,
                                .columns = columns},
                      .file = found.file,
                      .array = found.array,
                      .transposed = tensor.transposed});
  }
  return result;
}

bool HuggingFaceWeights::lacks(const ParamSpec& spec) {
  if (description_.has_heads || !is_bert_head(spec.name)) return false;
  for (const HuggingFaceTensor& tensor : huggingface_tensors(description_.family, spec))
    if (find(tensor.name).array != nullptr) return false;
  return true;
}

void HuggingFaceWeights::check_copies() {
  for (const auto& [name, original, why] :
       huggingface_copies(description_.family, description_.model.tied)) {
    const auto copy = arrays_.find(name);
    if (copy == arrays_.end()) continue;
    used_.insert(name);
    const Found table = get(original);
    BEV_CHECK(same_content(*copy->second.file, *copy->second.array, *table.file, *table.array),
              Data, "{}: {} differs from {}, but {}", copy->second.file->path().string(), name,
              table.array->name, why);
  }
}

void HuggingFaceWeights::check_all_used() {
  std::vector<std::string> unused;
  left_out_.clear();
  const bool is_masked_lm =
      description_.family == HuggingFaceFamily::Bert && !description_.model.binary_head;
  for (const auto& [name, found] : arrays_) {
    if (used_.contains(name) || is_huggingface_buffer(name)) continue;
    const bool is_left_out = is_masked_lm && (without_prefix(name).starts_with("pooler.dense.") ||
                                              name.starts_with("cls.seq_relationship."));
    (is_left_out ? left_out_ : unused).push_back(name);
  }
  BEV_CHECK(unused.empty(), Data,
            "{}: {} tensors belong to no parameter of the model, the first is {}", dir_.string(),
            unused.size(), in_quotes(unused.front()));
}

}  // namespace bev
