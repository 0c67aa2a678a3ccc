#include "checkpoint/huggingface.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/integer.h"
#include "checkpoint/atomic_directory.h"
#include "checkpoint/huggingface_names.h"
#include "checkpoint/safetensors.h"
#include "config/tokenizer_facts.h"
#include "text/tokenizer_files.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kConfigFile = "config.json";

// Marks a weights file as ours. In the file's metadata and not in config.json, because transformers
// carries fields it does not know into what it saves itself.
const std::map<std::string, std::string>& our_metadata() {
  static const std::map<std::string, std::string> metadata{{"format", "pt"},
                                                           {"written_by", "bevatron"}};
  return metadata;
}

// All tensors of a model directory, in one file or in shards.
class StoredModel {
 public:
  explicit StoredModel(const fs::path& dir) : dir_(dir) {
    if (fs::exists(dir / kWeightsFile)) {
      add_file(kWeightsFile);
    } else if (fs::exists(dir / kIndexFile)) {
      add_shards();
    } else {
      const bool pickled =
          fs::exists(dir / "pytorch_model.bin") || fs::exists(dir / "pytorch_model.bin.index.json");
      throw Error(
          ErrorKind::Data,
          format("{} holds neither {} nor {}{}", dir.string(), kWeightsFile, kIndexFile,
                 pickled ? "; its pytorch_model.bin must be converted to safetensors first" : ""));
    }
  }

  struct Found {
    const SafetensorsReader* file = nullptr;
    const StoredTensor* tensor = nullptr;
  };

  // By the name itself, or by the name without the prefix. Remembers that it was asked for.
  Found find(const std::string& name) {
    for (const std::string& candidate : {name, std::string(without_prefix(name))}) {
      const auto found = tensors_.find(candidate);
      if (found == tensors_.end()) continue;
      used_.insert(candidate);
      return found->second;
    }
    return {};
  }

  Found get(const std::string& name) {
    const Found found = find(name);
    BEV_CHECK(found.tensor != nullptr, Data, "{}: there is no tensor {}", dir_.string(),
              in_quotes(name));
    return found;
  }

  // Names nobody asked for, known buffers left out.
  std::vector<std::string> unused() const {
    std::vector<std::string> names;
    for (const auto& [name, found] : tensors_) {
      if (!used_.contains(name) && !is_huggingface_buffer(name)) names.push_back(name);
    }
    return names;
  }

 private:
  void add_file(const std::string& file) {
    const SafetensorsReader& reader = files_.emplace_back(dir_ / file);
    for (const StoredTensor& tensor : reader.tensors()) {
      const auto [place, is_new] = tensors_.emplace(tensor.name, Found{&reader, &tensor});
      BEV_CHECK(is_new, Data, "{}: {} stands in {} and in {}", dir_.string(),
                in_quotes(tensor.name), place->second.file->path().filename().string(), file);
    }
  }

  void add_shards() {
    const std::string source = (dir_ / kIndexFile).string();
    const Json index = read_json(dir_ / kIndexFile);
    BEV_CHECK(index.is_object() && index.contains("weight_map") && index["weight_map"].is_object(),
              Data, "{}: there is no object weight_map", source);
    const Json& weight_map = index["weight_map"];
    std::set<std::string> shards;
    for (const auto& [name, shard] : weight_map.items()) {
      // A shard lies in the directory itself; a path would read any file of the machine.
      BEV_CHECK(shard.is_string() && is_plain_name(shard.get_ref<const std::string&>()), Data,
                "{}: the shard of {} is not a file name", source, in_quotes(name));
      shards.insert(shard.get<std::string>());
    }
    for (const std::string& shard : shards) add_file(shard);
    for (const auto& [name, shard] : weight_map.items()) {
      const auto found = tensors_.find(name);
      BEV_CHECK(found != tensors_.end() &&
                    found->second.file->path().filename() == shard.get_ref<const std::string&>(),
                Data, "{}: {} is not in {}", source, in_quotes(name),
                in_quotes(shard.get_ref<const std::string&>()));
    }
  }

  static bool is_plain_name(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
           name.find('\0') == std::string::npos;
  }

  fs::path dir_;
  std::deque<SafetensorsReader> files_;
  std::map<std::string, Found> tensors_;
  std::set<std::string> used_;
};

// The elements of one tensor of the file in the store's dtype, rows first.
std::vector<std::byte> read_rows(const StoredModel::Found& found, bool transposed, DType dtype) {
  const DType stored = found.file->dtype_of(*found.tensor);
  BEV_CHECK(is_floating(stored), Data, "{}: {} holds whole numbers ({})",
            found.file->path().string(), in_quotes(found.tensor->name), found.tensor->dtype_name);
  std::vector<std::byte> values(static_cast<size_t>(found.tensor->shape.elements()) *
                                size_of(dtype));
  convert_elements(found.file->bytes(*found.tensor), stored, values, dtype);
  if (!transposed) return values;
  std::vector<std::byte> turned(values.size());
  transpose_elements(values, found.tensor->shape[0], found.tensor->shape[1], size_of(dtype),
                     turned);
  return turned;
}

// The whole parameter in logical coordinates.
std::vector<std::byte> read_parameter(StoredModel& model, HuggingFaceFamily family,
                                      const ParamSpec& spec, int64_t vocab, DType dtype) {
  const int64_t columns = spec.shape.elements() / spec.shape[0];
  const size_t row_bytes = static_cast<size_t>(columns) * size_of(dtype);
  std::vector<std::byte> logical(static_cast<size_t>(spec.shape[0]) * row_bytes);
  for (const HuggingFaceTensor& tensor : huggingface_tensors(family, spec)) {
    const StoredModel::Found found = model.get(tensor.name);
    const Shape expected = huggingface_shape(tensor, spec, vocab);
    BEV_CHECK(found.tensor->shape == expected, Data, "{}: {} is {}, the model has {}",
              found.file->path().string(), in_quotes(found.tensor->name),
              to_string(found.tensor->shape), to_string(expected));
    const std::vector<std::byte> rows = read_rows(found, tensor.transposed, dtype);
    std::memcpy(logical.data() + static_cast<size_t>(tensor.row_begin) * row_bytes, rows.data(),
                rows.size());
  }
  return logical;
}

// Copies this rank's pieces of a parameter out of the whole.
std::vector<std::byte> local_part(const ParamStore& params, const Param& param,
                                  std::vector<std::byte> logical) {
  const Shape& whole = param.spec.shape;
  const Shape& local = param.value.shape;
  if (whole == local) return logical;
  const size_t size = size_of(params.dtype());
  std::vector<std::byte> result(static_cast<size_t>(local.elements()) * size);
  const int64_t whole_columns = whole.elements() / whole[0];
  const int64_t local_columns = local.elements() / local[0];
  for (const Piece& piece : pieces(param.spec, params.grid(), params.rank())) {
    const bool by_rows = piece.dim == 0;
    const int64_t rows = by_rows ? piece.extent : local[0];
    const int64_t columns = by_rows ? local_columns : piece.extent;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t from = by_rows ? (piece.logical_begin + row) * whole_columns
                                   : row * whole_columns + piece.logical_begin;
      const int64_t to = by_rows ? (piece.local_begin + row) * local_columns
                                 : row * local_columns + piece.local_begin;
      std::memcpy(result.data() + static_cast<size_t>(to) * size,
                  logical.data() + static_cast<size_t>(from) * size,
                  static_cast<size_t>(columns) * size);
    }
  }
  return result;
}

// A tied model may store its head as well, if only as a copy of the embedding.
void check_tied_head(StoredModel& model, HuggingFaceFamily family) {
  const StoredModel::Found head = model.find("lm_head.weight");
  if (head.tensor == nullptr) return;
  const StoredModel::Found table = model.get(
      family == HuggingFaceFamily::Gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight");
  const auto a = head.file->bytes(*head.tensor);
  const auto b = table.file->bytes(*table.tensor);
  BEV_CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()), Data,
            "{}: tie_word_embeddings is true, but lm_head.weight is not the token embedding",
            head.file->path().string());
}

// The part of our tensor that one tensor of the file holds, in the layout of the file.
std::vector<std::byte> file_layout(const HuggingFaceTensor& tensor, const ConstTensor& value,
                                   Device& device, int64_t vocab) {
  const size_t size = size_of(value.dtype);
  const int64_t columns = value.shape.elements() / value.shape[0];
  const int64_t rows = tensor.vocabulary ? vocab : tensor.rows;
  std::vector<std::byte> bytes(static_cast<size_t>(rows * columns) * size);
  device.download(value.data + static_cast<size_t>(tensor.row_begin * columns) * size, bytes.data(),
                  bytes.size());
  if (!tensor.transposed) return bytes;
  std::vector<std::byte> turned(bytes.size());
  transpose_elements(bytes, rows, columns, size, turned);
  return turned;
}

void write_weights(const fs::path& path, HuggingFaceFamily family, int64_t vocab,
                   const ParamStore& params) {
  std::vector<TensorToWrite> list;
  std::map<std::string, std::pair<const Param*, HuggingFaceTensor>> sources;
  for (const Param* param : params.distinct()) {
    BEV_CHECK(param->value.shape == param->spec.shape, Internal,
              "{} is cut over ranks; only a whole model can be saved in Hugging Face's format",
              param->spec.name);
    for (const HuggingFaceTensor& tensor : huggingface_tensors(family, param->spec)) {
      list.push_back({tensor.name, params.dtype(), huggingface_shape(tensor, param->spec, vocab)});
      sources[list.back().name] = {param, tensor};
    }
  }
  const auto fill = [&](const TensorToWrite& out, std::span<std::byte> to) {
    const auto& [param, tensor] = sources.at(out.name);
    const std::vector<std::byte> bytes = file_layout(tensor, param->value, params.device(), vocab);
    std::memcpy(to.data(), bytes.data(), bytes.size());
  };
  write_safetensors(path, std::move(list), fill, our_metadata());
}

void check_replaceable(const fs::path& dir) {
  if (!fs::exists(dir)) return;
  BEV_CHECK(fs::is_directory(dir), Data, "{} exists and is not a directory", dir.string());
  if (fs::is_empty(dir)) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    BEV_CHECK(name == kConfigFile || name == kWeightsFile || is_tokenizer_file(name), Data,
              "{} is not replaced, because it holds {}, which is not an earlier output",
              dir.string(), in_quotes(name));
  }
  BEV_CHECK(fs::exists(dir / kWeightsFile) &&
                SafetensorsReader(dir / kWeightsFile).metadata() == our_metadata(),
            Data, "{} is not replaced: it holds a model that this program did not write",
            dir.string());
}

}  // namespace

void load_huggingface(const fs::path& dir, ParamStore& params) {
  const ErrorContext context(format("reading the model in {}", dir.string()));
  const HuggingFaceModel description = read_huggingface_config(dir);
  StoredModel model(dir);
  for (const Param* param : params.distinct()) {
    const int64_t vocab = description.model.vocab;
    std::vector<std::byte> logical =
        read_parameter(model, description.family, param->spec, vocab, params.dtype());
    if (param->value.data == nullptr) continue;  // planning: the file is checked, nothing is kept
    const std::vector<std::byte> local = local_part(params, *param, std::move(logical));
    params.device().upload(local.data(), param->value.data, local.size());
  }
  if (description.model.tied) check_tied_head(model, description.family);
  // A stage of a pipeline leaves the tensors of the other stages alone.
  if (params.grid().size(Axis::Pipeline) > 1) return;
  const std::vector<std::string> unused = model.unused();
  BEV_CHECK(unused.empty(), Data,
            "{}: {} tensors belong to no parameter of the model, the first is {}", dir.string(),
            unused.size(), in_quotes(unused.front()));
}

void check_huggingface_output(const fs::path& dir, const Config& config) {
  huggingface_family(config);
  check_replaceable(dir);
}

void save_huggingface(const fs::path& dir, const Config& config, const ParamStore& params) {
  const ErrorContext context(format("writing the model to {}", dir.string()));
  check_huggingface_output(dir, config);
  AtomicDirectory output(dir);
  AtomicFile description(output.path() / kConfigFile);
  description.write(huggingface_config(config, params.dtype()).dump(2) + "\n");
  description.commit();
  write_weights(output.path() / kWeightsFile, huggingface_family(config), config.model.vocab,
                params);
  for (const TokenizerFile& file : tokenizer_files(tokenizer_spec(config)))
    fs::copy_file(file.path, output.path() / file.name, fs::copy_options::overwrite_existing);
  output.commit();
}

std::vector<NamedValues> huggingface_values(HuggingFaceFamily family, const ParamSpec& spec,
                                            const ConstTensor& tensor, Device& device,
                                            int64_t vocab) {
  BEV_CHECK(tensor.shape == spec.shape && is_contiguous(tensor), Internal,
            "{}: a tensor {} is not the whole parameter {}", spec.name, to_string(tensor.shape),
            to_string(spec.shape));
  std::vector<NamedValues> result;
  for (const HuggingFaceTensor& part : huggingface_tensors(family, spec)) {
    const std::vector<std::byte> bytes = file_layout(part, tensor, device, vocab);
    NamedValues& out = result.emplace_back();
    out.name = part.name;
    out.shape = huggingface_shape(part, spec, vocab);
    out.values.resize(static_cast<size_t>(out.shape.elements()));
    convert_elements(bytes, tensor.dtype, std::as_writable_bytes(std::span(out.values)),
                     DType::f64);
  }
  return result;
}

}  // namespace bev
