#include "checkpoint/export_tensors.h"

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "tensor/rectangle.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

using Logical = CheckpointReader::Tensor;
using Progress = std::function<void(size_t bytes)>;

constexpr size_t kBlockBytes = size_t{64} << 20;
constexpr std::string_view kFileEnding = ".safetensors";

bool lies_in(const fs::path& path, const fs::path& folder) {
  std::error_code ignored;
  const fs::path inner = fs::weakly_canonical(path, ignored);
  const fs::path outer = fs::weakly_canonical(folder, ignored);
  const auto [end, unused] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return end == outer.end();
}

void check_target(const fs::path& to, const fs::path& checkpoint, bool is_file) {
  std::error_code ignored;
  BEV_CHECK(!lies_in(to, checkpoint), Usage,
            "{} lies in the checkpoint {}; any other place is legal", to.string(),
            checkpoint.string());
  BEV_CHECK(is_file ? !fs::is_directory(to, ignored)
                    : !fs::exists(to, ignored) || fs::is_empty(to, ignored),
            Usage, "{} is there already; legal is {}", to.string(),
            is_file ? "the name of a file" : "a new folder, or FILE.safetensors");
}

void write_file(const CheckpointReader& checkpoint, const std::vector<const Logical*>& tensors,
                const fs::path& path, const Progress& progress) {
  std::vector<TensorToWrite> arrays;
  for (const Logical* tensor : tensors)
    arrays.push_back({tensor->name, tensor->dtype, tensor->shape});
  std::vector<std::byte> buffer;
  stream_safetensors(path, std::move(arrays), [&](const TensorToWrite& array, PutBytes put) {
    const auto most = static_cast<int64_t>(kBlockBytes / size_of(array.dtype));
    for_each_block(whole_of(array.shape), most, [&](const Rectangle& block) {
      buffer.resize(static_cast<size_t>(block.elements()) * size_of(array.dtype));
      checkpoint.read(*checkpoint.find(array.name), block, array.dtype, buffer.data());
      put(buffer);
      if (progress) progress(buffer.size());
    });
  });
}

std::vector<std::vector<const Logical*>> divide(const std::vector<const Logical*>& tensors,
                                                size_t file_bytes) {
  std::vector<std::vector<const Logical*>> files(1);
  size_t filled = 0;
  for (const Logical* tensor : tensors) {
    if (!files.back().empty() && filled + tensor->bytes() > file_bytes) {
      files.emplace_back();
      filled = 0;
    }
    files.back().push_back(tensor);
    filled += tensor->bytes();
  }
  return files;
}

}  // namespace

Exported export_tensors(const CheckpointReader& checkpoint, const fs::path& to,
                        const ExportOptions& options, const Progress& progress) {
  const bool is_file = to.extension() == kFileEnding;
  check_target(to, checkpoint.folder(), is_file);
  Exported done;
  std::vector<const Logical*> tensors;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (!options.with_optimizer && parameter_of(name) != name) continue;
    tensors.push_back(&tensor);
    done.bytes += tensor.bytes();
  }
  done.tensors = tensors.size();
  if (is_file) {
    write_file(checkpoint, tensors, to, progress);
    done.files.push_back(to.filename().string());
    return done;
  }
  AtomicDirectory folder(to);
  const std::vector<std::vector<const Logical*>> files = divide(tensors, options.file_bytes);
  Json where = Json::object();
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string name = format("tensors-{:05d}-of-{:05d}{}", i + 1, files.size(), kFileEnding);
    write_file(checkpoint, files[i], folder.path() / name, progress);
    for (const Logical* tensor : files[i]) where[tensor->name] = name;
    done.files.push_back(name);
  }
  AtomicFile index(folder.path() / "tensors.safetensors.index.json");
  index.write(Json{{"metadata", {{"total_size", done.bytes}}}, {"weight_map", where}}.dump(2) +
              "\n");
  index.commit();
  folder.commit();
  return done;
}

}  // namespace bev
