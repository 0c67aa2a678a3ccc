#include "checkpoint/piece_file.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "base/integer.h"
#include "base/json.h"

namespace bev {

namespace {

// Names of the metadata that are of no array.
bool is_general(const std::string& name) {
  return name == "format" || name == "written_by" || name == "__metadata__";
}

std::string describe_piece(const TensorPiece& piece, uint64_t checksum) {
  Json shape = Json::array();
  for (int dim = 0; dim < piece.shape.rank(); ++dim) shape.push_back(piece.shape[dim]);
  return Json{{"tensor", piece.tensor},
              {"shape", shape},
              {"offset", {piece.where.row, piece.where.column}},
              {"xxh3", checksum_text(checksum)}}
      .dump();
}

// The shape of the array in the file.
Shape shape_in_file(const TensorPiece& piece) {
  if (piece.is_whole()) return piece.shape;
  if (piece.shape.rank() <= 1) return {piece.where.rows};
  return {piece.where.rows, piece.where.columns};
}

Shape parse_shape(const Json& json, const std::string& source) {
  BEV_CHECK(json.is_array() && json.size() <= static_cast<size_t>(kMaxRank), Data,
            "{}: the shape is not a list of at most {} numbers", source, kMaxRank);
  std::array<int64_t, kMaxRank> extents{};
  int64_t elements = 1;
  for (size_t dim = 0; dim < json.size(); ++dim) {
    BEV_CHECK(json[dim].is_number_unsigned() && json[dim].get<uint64_t>() >= 1 &&
                  json[dim].get<uint64_t>() <= uint64_t{1} << 40 &&
                  !multiply_overflows(elements, json[dim].get<int64_t>(), elements) &&
                  elements <= int64_t{1} << 56,
              Data, "{}: the shape has an extent that is not from 1 to 2^40, or is too large",
              source);
    extents[dim] = json[dim].get<int64_t>();
  }
  return make_shape(std::span(extents).first(json.size()));
}

PieceInFile parse_piece(const StoredTensor& array, const std::string& text, std::string_view file) {
  const std::string source = format("{}, {}", file, in_quotes(array.name));
  const Json json = parse_json(text, source, {.bytes = 65536, .depth = 3});
  BEV_CHECK(json.is_object() && json.contains("tensor") && json["tensor"].is_string() &&
                json.contains("shape") && json.contains("offset") && json.contains("xxh3") &&
                json["xxh3"].is_string(),
            Data, "{}: its description lacks tensor, shape, offset or xxh3", source);
  BEV_CHECK(array.dtype && is_floating(*array.dtype), Data,
            "{}: it is stored as {}, which is not one of F64, F32, BF16, F16", source,
            array.dtype_name);
  PieceInFile found;
  TensorPiece& piece = found.piece;
  piece.tensor = json["tensor"].get<std::string>();
  piece.dtype = *array.dtype;
  piece.shape = parse_shape(json["shape"], source);
  const Json& offset = json["offset"];
  const auto is_place = [](const Json& j) {
    return j.is_number_unsigned() && j.get<uint64_t>() <= uint64_t{1} << 56;
  };
  BEV_CHECK(offset.is_array() && offset.size() == 2 && is_place(offset[0]) && is_place(offset[1]),
            Data, "{}: the offset is not a pair of whole numbers of 0 or more", source);
  const Rectangle whole = whole_of(piece.shape);
  const Rectangle here = array.shape == piece.shape ? whole : whole_of(array.shape);
  piece.where = {.row = offset[0].get<int64_t>(),
                 .column = offset[1].get<int64_t>(),
                 .rows = here.rows,
                 .columns = here.columns};
  BEV_CHECK(here.elements() > 0 && piece.where.row_end() <= whole.rows &&
                piece.where.column_end() <= whole.columns && array.shape == shape_in_file(piece),
            Data, "{}: a piece {} at {}, {} does not lie in a tensor {}", source,
            to_string(array.shape), piece.where.row, piece.where.column, to_string(piece.shape));
  const std::optional<uint64_t> checksum = parse_checksum(json["xxh3"].get<std::string>());
  BEV_CHECK(checksum, Data, "{}: xxh3 is not a checksum of 16 hexadecimal digits", source);
  found.checksum = *checksum;
  found.begin = array.begin;
  return found;
}

}  // namespace

std::string TensorPiece::name_in_file() const {
  return is_whole() ? tensor : format("{}@{},{}", tensor, where.row, where.column);
}

PieceFileWriter::PieceFileWriter(const std::filesystem::path& path, std::vector<TensorPiece> pieces)
    : path_(path), pieces_(std::move(pieces)), running_(std::make_unique<Checksum>()), file_(path) {
  std::set<std::string> names;
  for (const TensorPiece& piece : pieces_) {
    const std::string name = piece.name_in_file();
    BEV_CHECK(piece.where.elements() > 0 &&
                  intersection(piece.where, whole_of(piece.shape)) == piece.where &&
                  !is_general(name) && names.insert(name).second,
              Internal,
              "{}: {} is empty, lies outside its tensor, has a name of the format or "
              "stands twice",
              path.string(), name);
  }
  const std::string placeholder = header();
  header_bytes_ = placeholder.size();
  left_ = pieces_.empty() ? 0 : pieces_.front().bytes();
  file_.write(placeholder);
}

// Checksums have a fixed width: the header's length does not depend on them.
std::string PieceFileWriter::header() const {
  std::vector<TensorToWrite> arrays;
  std::map<std::string, std::string> metadata{{"format", "pt"}, {"written_by", "bevatron"}};
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const TensorPiece& piece = pieces_[i];
    arrays.push_back({piece.name_in_file(), piece.dtype, shape_in_file(piece)});
    metadata[arrays.back().name] = describe_piece(piece, i < checksums_.size() ? checksums_[i] : 0);
  }
  return safetensors_header(arrays, metadata);
}

void PieceFileWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  data_bytes_ += bytes.size();
  while (!bytes.empty()) {
    BEV_CHECK(checksums_.size() < pieces_.size(), Internal, "{}: more bytes than its pieces have",
              path_.string());
    const size_t count = std::min(left_, bytes.size());
    running_->add(bytes.first(count));
    bytes = bytes.subspan(count);
    left_ -= count;
    if (left_ > 0) continue;
    checksums_.push_back(running_->value());
    running_ = std::make_unique<Checksum>();
    if (checksums_.size() < pieces_.size()) left_ = pieces_[checksums_.size()].bytes();
  }
}

CheckpointFile PieceFileWriter::finish() {
  BEV_CHECK(checksums_.size() == pieces_.size(), Internal, "{}: {} of {} pieces were written",
            path_.string(), checksums_.size(), pieces_.size());
  const std::string head = header();
  file_.write_at(0, std::as_bytes(std::span<const char>(head.data(), head.size())));
  file_.commit();
  return {.name = path_.filename().string(),
          .bytes = header_bytes_ + data_bytes_,
          .checksum = checksum_of(head),
          .holds_pieces = true};
}

std::vector<PieceInFile> parse_piece_header(std::span<const std::byte> head, size_t file_bytes,
                                            std::string_view source) {
  const SafetensorsHeader header = parse_safetensors_header(head, file_bytes, source);
  std::vector<PieceInFile> pieces;
  for (const StoredTensor& array : header.tensors) {
    const auto found = header.metadata.find(array.name);
    BEV_CHECK(found != header.metadata.end() && !is_general(array.name), Data,
              "{}: the metadata do not say which tensor {} is a piece of", source,
              in_quotes(array.name));
    pieces.push_back(parse_piece(array, found->second, source));
  }
  return pieces;
}

std::vector<PieceInFile> read_piece_header(const PositionedFile& file,
                                           const CheckpointFile& entry) {
  const std::string source = file.path().string();
  BEV_CHECK(file.size() == entry.bytes, Data, "{} has {} bytes; when it was written it had {}",
            source, file.size(), entry.bytes);
  std::array<std::byte, 8> first{};
  file.read(0, std::span(first).first(std::min(first.size(), file.size())));
  std::vector<std::byte> head(safetensors_data_begin(
      std::span(first).first(std::min(first.size(), file.size())), file.size(), source));
  file.read(0, head);
  BEV_CHECK(checksum_of(head) == entry.checksum, Data,
            "{} is damaged: its header does not have the checksum of the manifest", source);
  return parse_piece_header(head, file.size(), source);
}

}  // namespace bev
