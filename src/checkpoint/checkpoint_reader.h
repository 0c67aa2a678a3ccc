// A checkpoint on disk, read under any layout: logical tensors, put together from the pieces that
// some layout wrote.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/piece_file.h"

namespace bev {

class CheckpointReader {
 public:
  struct Part {
    size_t file;  // index into the opened files
    Rectangle where;
    size_t begin;  // first byte in the file
    uint64_t checksum;
    mutable bool is_verified = false;
  };
  struct Tensor {
    std::string name;
    DType dtype{};
    Shape shape;
    std::vector<Part> parts;  // cover the tensor, each element once

    size_t bytes() const { return static_cast<size_t>(shape.elements()) * size_of(dtype); }
  };

  // Checks the manifest, the presence and size of every file, all headers, all files that are not
  // of pieces, and that the pieces make up whole tensors. Data error that names what is wrong. The
  // data of pieces are checked when they are read.
  explicit CheckpointReader(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  // By name: "layers.3.mlp.down.weight", and what an optimizer keeps of it behind a slash, such as
  // "layers.3.mlp.down.weight/adam.m".
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const Tensor* find(const std::string& name) const;  // null: there is none
  size_t bytes() const;                               // of all files

  // The elements of a rectangle, converted, row by row without gaps. A piece that does not have its
  // checksum is a Data error. Needs memory for some rows of a piece. REQUIRES: it lies within the
  // tensor.
  void read(const Tensor& tensor, const Rectangle& where, DType dtype, std::byte* to) const;

  // Reads and checks all that was not checked before, file by file from front to back; the first
  // damage is a Data error. `progress` hears of the bytes read: at most bytes() in all.
  void verify(const std::function<void(size_t bytes)>& progress = {}) const;

  // A file that is not of pieces: all of it, checked. Data error when there is none of the name.
  std::string read_file(const std::string& name) const;

 private:
  void add_file(const CheckpointFile& entry);
  // Reads rows of a part, checking it unless that has been done. `row`: counted in the part.
  void visit_rows(const Tensor& tensor, const Part& part, int64_t row_begin, int64_t row_end,
                  FunctionRef<void(int64_t row, int64_t rows, const std::byte* bytes)> visit) const;

  std::filesystem::path folder_;
  Manifest manifest_;
  std::deque<PositionedFile> files_;
  std::map<std::string, Tensor> tensors_;
};

// What belongs to a parameter of an optimizer: "NAME/adam.m" -> "NAME"; a weight is its own.
std::string_view parameter_of(std::string_view tensor);

}  // namespace bev
