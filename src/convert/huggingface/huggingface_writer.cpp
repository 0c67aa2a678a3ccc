#include "convert/huggingface/huggingface_writer.h"

#include <algorithm>
#include <map>

#include "base/atomic_directory.h"
#include "base/check.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "convert/huggingface/huggingface_family.h"
#include "convert/huggingface/huggingface_files.h"
#include "convert/huggingface/huggingface_names.h"
#include "convert/transpose.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

struct Planned {
  const ParamSpec* spec;
  HuggingFaceTensor tensor;
  TensorToWrite out;

  size_t bytes() const { return static_cast<size_t>(out.shape.elements()) * size_of(out.dtype); }
};

using Shard = std::vector<Planned>;

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
        Planned planned{&spec, std::move(tensor), {}};
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
    write_text(dir / kHuggingFaceConfig, huggingface_config(config_, main_dtype_).dump(2) + "\n");
    for (size_t i = 0; i < shards_.size(); ++i)
      write_shard(dir / huggingface_shard_name(i + 1, shards_.size()), shards_[i]);
    if (shards_.size() > 1) write_text(dir / kHuggingFaceIndex, index().dump(2) + "\n");
  }

 private:
  static void write_text(const fs::path& path, const std::string& text) {
    AtomicFile file(path);
    file.write(text);
    file.commit();
  }

  Json index() const {
    Json map = Json::object();
    size_t bytes = 0;
    int64_t parameters = 0;
    for (size_t i = 0; i < shards_.size(); ++i) {
      for (const Planned& planned : shards_[i]) {
        map[planned.out.name] = huggingface_shard_name(i + 1, shards_.size());
        bytes += planned.bytes();
        parameters += planned.out.shape.elements();
      }
    }
    return {{"metadata", {{"total_size", bytes}, {"total_parameters", parameters}}},
            {"weight_map", map}};
  }

  void write_shard(const fs::path& path, const Shard& shard) {
    std::map<std::string, const Planned*> by_name;
    std::vector<TensorToWrite> list;
    for (const Planned& planned : shard) {
      by_name[planned.out.name] = &planned;
      list.push_back(planned.out);
    }
    SafetensorsWriter file(path, std::move(list), huggingface_metadata());
    for (const TensorToWrite& out : file.tensors()) write_tensor(file, *by_name.at(out.name));
    file.finish();
  }

  void write_tensor(SafetensorsWriter& file, const Planned& planned) {
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

  void read(const Rectangle& where, const Planned& planned, std::vector<std::byte>& to) {
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
  for (const TokenizerFile& file : output.files)
    fs::copy_file(file.path, folder.path() / file.name, fs::copy_options::overwrite_existing);
  folder.commit();
}

}  // namespace bev
