// Tensors by name, wherever they are stored: in a checkpoint of any layout, in a safetensors file
// or in a folder of such files.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "checkpoint/checkpoint_reader.h"
#include "tensor/rectangle.h"

namespace bev {

class TensorSource {
 public:
  struct Entry {
    DType dtype{};
    Shape shape;
  };

  virtual ~TensorSource() = default;
  virtual const std::filesystem::path& path() const = 0;
  virtual const std::map<std::string, Entry>& tensors() const = 0;
  // What defines the run besides the tensors; null where nothing says it.
  virtual const Manifest* manifest() const { return nullptr; }
  // The elements of a rectangle, converted, row by row without gaps. REQUIRES: it lies within a
  // tensor of this name.
  virtual void read(const std::string& name, const Rectangle& where, DType dtype,
                    std::byte* to) const = 0;
};

std::unique_ptr<TensorSource> tensors_of(std::shared_ptr<const CheckpointReader> checkpoint);

// One checkpoint, the newest good one of a folder of checkpoints or of a run, a safetensors file,
// or a folder with such files such as a run's model. Data error when it is none of these.
std::unique_ptr<TensorSource> open_tensor_source(const std::filesystem::path& path);

}  // namespace bev
