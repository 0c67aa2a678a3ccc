#include "checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/process.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

constexpr size_t kReadBytes = size_t{8} << 20;

// That the parts cover the tensor, each element once.
void check_cover(const CheckpointReader::Tensor& tensor, const fs::path& folder) {
  std::vector<const Rectangle*> order;
  int64_t elements = 0;
  for (const CheckpointReader::Part& part : tensor.parts) {
    order.push_back(&part.where);
    elements += part.where.elements();
  }
  std::sort(order.begin(), order.end(),
            [](const Rectangle* a, const Rectangle* b) { return a->row < b->row; });
  // Those that reach the row at which the next one begins.
  std::vector<const Rectangle*> open;
  for (const Rectangle* next : order) {
    std::erase_if(open, [&](const Rectangle* r) { return r->row_end() <= next->row; });
    for (const Rectangle* other : open)
      BEV_CHECK(intersection(*next, *other).elements() == 0, Data,
                "{}: two pieces of {} hold the same elements", folder.string(),
                in_quotes(tensor.name));
    open.push_back(next);
  }
  BEV_CHECK(elements == tensor.shape.elements(), Data,
            "{}: of {} {} elements are there, {} are missing", folder.string(),
            in_quotes(tensor.name), elements, tensor.shape.elements() - elements);
}

}  // namespace

std::string_view parameter_of(std::string_view tensor) {
  return tensor.substr(0, tensor.find('/'));
}

CheckpointReader::CheckpointReader(const fs::path& folder)
    : folder_(folder), manifest_(read_manifest(folder)) {
  // Every rank of a process opens all of them.
  if (manifest_.files.size() > 16) raise_open_file_limit();
  for (const CheckpointFile& entry : manifest_.files) {
    const fs::path path = folder / entry.name;
    std::error_code ignored;
    BEV_CHECK(fs::is_regular_file(path, ignored), Data, "{}: the file {} is missing",
              folder.string(), entry.name);
    const uintmax_t bytes = fs::file_size(path, ignored);
    BEV_CHECK(bytes == entry.bytes, Data, "{} has {} bytes; when it was written it had {}",
              path.string(), bytes, entry.bytes);
    if (entry.holds_pieces) {
      add_file(entry);
    } else {
      read_file(entry.name);
    }
  }
  for (const auto& [name, tensor] : tensors_) check_cover(tensor, folder);
}

void CheckpointReader::add_file(const CheckpointFile& entry) {
  const PositionedFile& file = files_.emplace_back(folder_ / entry.name);
  for (const PieceInFile& found : read_piece_header(file, entry)) {
    const TensorPiece& piece = found.piece;
    const auto [place, is_new] = tensors_.try_emplace(piece.tensor);
    Tensor& tensor = place->second;
    if (is_new) {
      tensor.name = piece.tensor;
      tensor.dtype = piece.dtype;
      tensor.shape = piece.shape;
    }
    BEV_CHECK(tensor.dtype == piece.dtype && tensor.shape == piece.shape, Data,
              "{}: a piece is of {} {} {}, others of {} {}", file.path().string(),
              in_quotes(piece.tensor), name_of(piece.dtype), to_string(piece.shape),
              name_of(tensor.dtype), to_string(tensor.shape));
    tensor.parts.push_back({.file = files_.size() - 1,
                            .where = piece.where,
                            .begin = found.begin,
                            .checksum = found.checksum});
  }
}

const CheckpointReader::Tensor* CheckpointReader::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

size_t CheckpointReader::bytes() const {
  size_t total = 0;
  for (const CheckpointFile& file : manifest_.files) total += file.bytes;
  return total;
}

void CheckpointReader::visit_rows(
    const Tensor& tensor, const Part& part, int64_t row_begin, int64_t row_end,
    FunctionRef<void(int64_t row, int64_t rows, const std::byte* bytes)> visit) const {
  const size_t row_bytes = static_cast<size_t>(part.where.columns) * size_of(tensor.dtype);
  const auto step = static_cast<int64_t>(std::max<size_t>(1, kReadBytes / row_bytes));
  const PositionedFile& file = files_[part.file];
  // The checksum needs all rows.
  const int64_t first = part.is_verified ? row_begin : 0;
  const int64_t last = part.is_verified ? row_end : part.where.rows;
  Checksum checksum;
  std::vector<std::byte> buffer;
  for (int64_t row = first; row < last; row += step) {
    const int64_t rows = std::min(step, last - row);
    buffer.resize(static_cast<size_t>(rows) * row_bytes);
    file.read(part.begin + static_cast<size_t>(row) * row_bytes, buffer);
    if (!part.is_verified) checksum.add(buffer);
    const int64_t from = std::max(row, row_begin), to = std::min(row + rows, row_end);
    if (from < to)
      visit(from, to - from, buffer.data() + static_cast<size_t>(from - row) * row_bytes);
  }
  if (part.is_verified) return;
  BEV_CHECK(checksum.value() == part.checksum, Data,
            "{} is damaged: {} at {}, {} does not have its checksum", file.path().string(),
            in_quotes(tensor.name), part.where.row, part.where.column);
  part.is_verified = true;
}

void CheckpointReader::read(const Tensor& tensor, const Rectangle& where, DType dtype,
                            std::byte* to) const {
  const Rectangle whole = whole_of(tensor.shape);
  BEV_CHECK(intersection(where, whole) == where, Internal,
            "a part of {} {} that it does not have is read", tensor.name, to_string(tensor.shape));
  const size_t size = size_of(dtype), stored = size_of(tensor.dtype);
  for (const Part& part : tensor.parts) {
    const Rectangle both = intersection(part.where, where);
    if (both.elements() == 0) continue;
    // Rows that are whole on both sides are one run of elements.
    const bool is_run = both.columns == part.where.columns && both.columns == where.columns;
    visit_rows(tensor, part, both.row - part.where.row, both.row_end() - part.where.row,
               [&](int64_t row, int64_t rows, const std::byte* bytes) {
                 const Rectangle here{.row = part.where.row + row,
                                      .column = part.where.column,
                                      .rows = rows,
                                      .columns = part.where.columns};
                 const int64_t step = is_run ? rows : 1;
                 const auto count = static_cast<size_t>(both.columns * step);
                 for (int64_t r = here.row; r < here.row_end(); r += step) {
                   const auto from = static_cast<size_t>(here.index_of(r, both.column));
                   const auto into = static_cast<size_t>(where.index_of(r, both.column));
                   convert_elements({bytes + from * stored, count * stored}, tensor.dtype,
                                    {to + into * size, count * size}, dtype);
                 }
               });
  }
}

void CheckpointReader::verify(const std::function<void(size_t bytes)>& progress) const {
  const auto report = [&](size_t bytes) {
    if (progress) progress(bytes);
  };
  for (const CheckpointFile& entry : manifest_.files)
    if (!entry.holds_pieces) report(read_file(entry.name).size());
  std::vector<std::pair<const Tensor*, const Part*>> order;
  for (const auto& [name, tensor] : tensors_)
    for (const Part& part : tensor.parts)
      if (!part.is_verified) order.emplace_back(&tensor, &part);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->file, a.second->begin) < std::pair(b.second->file, b.second->begin);
  });
  for (const auto& [tensor, part] : order) {
    const size_t row_bytes = static_cast<size_t>(part->where.columns) * size_of(tensor->dtype);
    visit_rows(*tensor, *part, 0, part->where.rows, [&](int64_t, int64_t rows, const std::byte*) {
      report(static_cast<size_t>(rows) * row_bytes);
    });
  }
}

std::string CheckpointReader::read_file(const std::string& name) const {
  const auto entry =
      std::find_if(manifest_.files.begin(), manifest_.files.end(),
                   [&](const CheckpointFile& f) { return f.name == name && !f.holds_pieces; });
  BEV_CHECK(entry != manifest_.files.end(), Data, "{}: there is no file {}", folder_.string(),
            in_quotes(name));
  std::string text = read_text(folder_ / name);
  BEV_CHECK(text.size() == entry->bytes && checksum_of(text) == entry->checksum, Data,
            "{} is damaged: it does not have the checksum of the manifest",
            (folder_ / name).string());
  return text;
}

}  // namespace bev
