#include "convert/huggingface/huggingface.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "config/tokenizer_config.h"
#include "convert/array_patch.h"
#include "convert/huggingface/huggingface_config.h"
#include "convert/huggingface/huggingface_names.h"
#include "convert/huggingface/huggingface_weights.h"
#include "convert/weight_source.h"
#include "data/span_masking.h"
#include "text/tokenizer_files.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

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

}  // namespace

void load_huggingface(const fs::path& dir, ParamStore& params, MissingHeads heads) {
  const ErrorContext context(format("reading the model in {}", dir.string()));
  HuggingFaceWeights weights(dir, heads);
  load_weights(weights, params);
  weights.check_copies();
  // A stage of a pipeline leaves the tensors of the other stages alone.
  if (params.layout().pipeline == 1) weights.check_all_used();
}

void check_huggingface_output(const fs::path& dir, const Config& config) {
  huggingface_family(config);
  check_huggingface_replaceable(dir);
}

void save_huggingface(const fs::path& dir, const Config& config, const ParamStore& params) {
  std::vector<ParamSpec> specs;
  for (const Param* param : params.all()) specs.push_back(param->spec);
  StoreWeights weights(params);
  const std::vector<TokenizerFile> files = tokenizer_files(tokenizer_spec(config));
  write_huggingface(dir, config, specs, weights,
                    {.files = files, .ids = decoder_ids(config, files)});
}

DecoderIds decoder_ids(const Config& config, std::span<const TokenizerFile> files) {
  if (config.model.family != ModelFamily::T5) return {};
  for (const TokenizerFile& file : files)
    if (file.name == kGenerationConfig)
      return read_generation_config(file.path, config.model.vocab);
  try {
    const std::unique_ptr<Tokenizer> tokenizer = tokenizer_of(config);
    if (tokenizer == nullptr) return {};
    const SpanVocabulary ids = span_vocabulary(*tokenizer, "");
    return {.begin = ids.begin, .end = ids.end, .pad = ids.pad};
  } catch (const Error&) {
    // A run on mock data may name any tokenizer.
    return {};
  }
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

namespace fs = std::filesystem;

namespace {

struct PlannedTensor {
  const ParamSpec* spec;
  HuggingFaceTensor tensor;
  TensorToWrite out;

  size_t bytes() const { return static_cast<size_t>(out.shape.elements()) * size_of(out.dtype); }
};

using Shard = std::vector<PlannedTensor>;

class Writer {
 public:
  Writer(const Config& config, std::span<const ParamSpec> specs, WeightSource& source,
         const HuggingFaceOutput& output)
      : config_(config), source_(source), output_(output) {
    const HuggingFaceFamily family = huggingface_family(config);
    size_t in_shard = 0;
    std::map<DType, size_t> types;
    for (const ParamSpec& spec : specs) {
      const DType dtype = output.dtype.value_or(source.dtype_of(spec));
      for (HuggingFaceTensor& tensor : huggingface_tensors(family, spec)) {
        const Shape shape = huggingface_shape(tensor, spec, config.model.vocab);
        PlannedTensor planned{&spec, std::move(tensor), {}};
        planned.out = {planned.tensor.name, dtype, shape};
        const size_t bytes = planned.bytes();
        if (shards_.empty() || in_shard + bytes > output.most_shard_bytes) {
          shards_.emplace_back();
          in_shard = 0;
        }
        in_shard += bytes;
        types[dtype] += bytes;
        shards_.back().push_back(std::move(planned));
      }
    }
    main_dtype_ = std::max_element(types.begin(), types.end(), [](const auto& a, const auto& b) {
                    return a.second < b.second;
                  })->first;
  }

  void write(const fs::path& dir) {
    write_text(dir / kHuggingFaceConfig,
               huggingface_config(config_, main_dtype_, output_.ids).dump(2) + "\n");
    for (size_t i = 0; i < shards_.size(); ++i)
      write_shard(dir / huggingface_shard_name(i + 1, shards_.size()), shards_[i]);
    if (shards_.size() > 1) write_text(dir / kHuggingFaceIndex, index().dump(2) + "\n");
  }

  static void write_text(const fs::path& path, const std::string& text) {
    AtomicFile file(path);
    file.write(text);
    file.commit();
  }

 private:
  Json index() const {
    Json map = Json::object();
    size_t bytes = 0;
    int64_t parameters = 0;
    for (size_t i = 0; i < shards_.size(); ++i) {
      for (const PlannedTensor& planned : shards_[i]) {
        map[planned.out.name] = huggingface_shard_name(i + 1, shards_.size());
        bytes += planned.bytes();
        parameters += planned.out.shape.elements();
      }
    }
    return {{"metadata", {{"total_size", bytes}, {"total_parameters", parameters}}},
            {"weight_map", map}};
  }

  void write_shard(const fs::path& path, const Shard& shard) {
    std::map<std::string, const PlannedTensor*> by_name;
    std::vector<TensorToWrite> list;
    for (const PlannedTensor& planned : shard) {
      by_name[planned.out.name] = &planned;
      list.push_back(planned.out);
    }
    SafetensorsWriter file(path, std::move(list), huggingface_metadata());
    for (const TensorToWrite& out : file.tensors()) write_tensor(file, *by_name.at(out.name));
    file.finish();
  }

  void write_tensor(SafetensorsWriter& file, const PlannedTensor& planned) {
    const HuggingFaceTensor& tensor = planned.tensor;
    const size_t size = size_of(planned.out.dtype);
    // Of the file.
    const Rectangle whole = whole_of(planned.out.shape);
    const size_t row_bytes = static_cast<size_t>(whole.columns) * size;
    const auto step = static_cast<int64_t>(std::max<size_t>(1, output_.block_bytes / row_bytes));
    for (int64_t row = 0; row < whole.rows; row += step) {
      const int64_t rows = std::min(step, whole.rows - row);
      buffer_.resize(static_cast<size_t>(rows) * row_bytes);
      if (tensor.transposed) {
        read({.row = tensor.row_begin, .column = row, .rows = whole.columns, .columns = rows},
             planned, buffer_);
        turned_.resize(buffer_.size());
        transpose_elements(buffer_, whole.columns, rows, size, turned_);
        std::swap(buffer_, turned_);
      } else {
        read({.row = tensor.row_begin + row, .rows = rows, .columns = whole.columns}, planned,
             buffer_);
      }
      file.write(buffer_);
      if (output_.on_progress) output_.on_progress(buffer_.size());
    }
  }

  void read(const Rectangle& where, const PlannedTensor& planned, std::vector<std::byte>& to) {
    source_.read(*planned.spec, where, planned.out.dtype, to.data());
  }

  const Config& config_;
  WeightSource& source_;
  const HuggingFaceOutput& output_;
  std::vector<Shard> shards_;
  DType main_dtype_{};
  std::vector<std::byte> buffer_, turned_;
};

}  // namespace

void write_huggingface(const fs::path& dir, const Config& config, std::span<const ParamSpec> specs,
                       WeightSource& source, const HuggingFaceOutput& output) {
  const ErrorContext context(format("writing the model to {}", dir.string()));
  check_huggingface_replaceable(dir);
  Writer writer(config, specs, source, output);
  AtomicDirectory folder(dir);
  writer.write(folder.path());
  for (const TokenizerFile& file : output.files) {
    const fs::path to = folder.path() / file.name;
    if (file.path.empty()) {
      Writer::write_text(to, file.text);
    } else {
      fs::copy_file(file.path, to, fs::copy_options::overwrite_existing);
    }
  }
  folder.commit();
}

}  // namespace bev
