#include "checkpoint/tensor_source.h"

#include <algorithm>
#include <deque>

#include "base/check.h"
#include "checkpoint/checkpoint_survey.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

class CheckpointTensors : public TensorSource {
 public:
  explicit CheckpointTensors(std::shared_ptr<const CheckpointReader> checkpoint)
      : checkpoint_(std::move(checkpoint)) {
    for (const auto& [name, tensor] : checkpoint_->tensors())
      tensors_[name] = {tensor.dtype, tensor.shape};
  }

  const fs::path& path() const override { return checkpoint_->folder(); }
  const std::map<std::string, Entry>& tensors() const override { return tensors_; }
  const Manifest* manifest() const override { return &checkpoint_->manifest(); }
  void read(const std::string& name, const Rectangle& where, DType dtype,
            std::byte* to) const override {
    checkpoint_->read(checkpoint_->tensors().at(name), where, dtype, to);
  }

 private:
  std::shared_ptr<const CheckpointReader> checkpoint_;
  std::map<std::string, Entry> tensors_;
};

class FileTensors : public TensorSource {
 public:
  FileTensors(fs::path path, const std::vector<fs::path>& files) : path_(std::move(path)) {
    for (const fs::path& file : files) {
      const SafetensorsReader& reader = readers_.emplace_back(file);
      for (const StoredTensor& tensor : reader.tensors()) {
        BEV_CHECK(places_.emplace(tensor.name, Place{&reader, &tensor}).second, Data,
                  "{}: {} stands in two files", path_.string(), in_quotes(tensor.name));
        tensors_[tensor.name] = {reader.dtype_of(tensor), tensor.shape};
      }
    }
  }

  const fs::path& path() const override { return path_; }
  const std::map<std::string, Entry>& tensors() const override { return tensors_; }
  void read(const std::string& name, const Rectangle& where, DType dtype,
            std::byte* to) const override {
    const auto& [reader, tensor] = places_.at(name);
    const DType stored = reader->dtype_of(*tensor);
    const std::span<const std::byte> bytes = reader->bytes(*tensor);
    const Rectangle whole = whole_of(tensor->shape);
    // Rows that are wanted whole are one run of elements.
    const int64_t step = where.columns == whole.columns ? where.rows : 1;
    const auto count = static_cast<size_t>(where.columns * step);
    for (int64_t row = where.row; row < where.row_end(); row += step) {
      const auto from = static_cast<size_t>(whole.index_of(row, where.column));
      const auto into = static_cast<size_t>(where.index_of(row, where.column));
      convert_elements(bytes.subspan(from * size_of(stored), count * size_of(stored)), stored,
                       {to + into * size_of(dtype), count * size_of(dtype)}, dtype);
    }
  }

 private:
  struct Place {
    const SafetensorsReader* reader;
    const StoredTensor* tensor;
  };

  fs::path path_;
  std::deque<SafetensorsReader> readers_;
  std::map<std::string, Entry> tensors_;
  std::map<std::string, Place> places_;
};

std::vector<fs::path> safetensors_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".safetensors") files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::unique_ptr<TensorSource> tensors_of(std::shared_ptr<const CheckpointReader> checkpoint) {
  return std::make_unique<CheckpointTensors>(std::move(checkpoint));
}

std::unique_ptr<TensorSource> open_tensor_source(const fs::path& path) {
  std::error_code ignored;
  BEV_CHECK(fs::exists(path, ignored), Data, "there is no {}", path.string());
  if (!fs::is_directory(path, ignored)) {
    BEV_CHECK(path.extension() == ".safetensors", Data,
              "{} is neither a checkpoint nor a folder with a model nor a .safetensors file",
              path.string());
    return std::make_unique<FileTensors>(path, std::vector<fs::path>{path});
  }
  if (!find_checkpoints(path).empty())
    return tensors_of(std::make_shared<CheckpointReader>(newest_good(path).path));
  for (const fs::path& folder : {path, path / "model"})
    if (const std::vector<fs::path> files = safetensors_in(folder); !files.empty())
      return std::make_unique<FileTensors>(folder, files);
  throw Error(ErrorKind::Data,
              format("{} holds neither checkpoints nor .safetensors files", path.string()));
}

}  // namespace bev
