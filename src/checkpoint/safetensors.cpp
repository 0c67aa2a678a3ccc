#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/integer.h"
#include "base/json.h"

namespace bev {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr size_t kLengthBytes = 8;

struct FormatType {
  std::string_view name;
  size_t bytes;
  std::optional<DType> dtype;
};

// The types of the format, in the order in which its own library lays them out in a file. Arrays of
// any of them may stand in a file; only those with a DType can be read.
constexpr std::array<FormatType, 15> kFormatTypes{{
    {"U64", 8, std::nullopt},
    {"I64", 8, DType::i64},
    {"F64", 8, DType::f64},
    {"F32", 4, DType::f32},
    {"U32", 4, std::nullopt},
    {"I32", 4, DType::i32},
    {"BF16", 2, DType::bf16},
    {"F16", 2, DType::f16},
    {"U16", 2, std::nullopt},
    {"I16", 2, std::nullopt},
    {"F8_E4M3", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt},
    {"I8", 1, std::nullopt},
    {"U8", 1, DType::u8},
    {"BOOL", 1, std::nullopt},
}};

const FormatType& format_type(DType dtype) {
  return *std::find_if(kFormatTypes.begin(), kFormatTypes.end(),
                       [&](const FormatType& t) { return t.dtype == dtype; });
}

// Reads the entries of one header. Every problem names the file and the tensor.
class HeaderReader {
 public:
  HeaderReader(std::string_view source, size_t data_begin, size_t data_bytes)
      : source_(source), data_begin_(data_begin), data_bytes_(data_bytes) {}

  std::map<std::string, std::string> metadata(const Json& value) const {
    BEV_CHECK(value.is_object(), Data, "{}: __metadata__ is not an object", source_);
    std::map<std::string, std::string> result;
    for (const auto& [key, text] : value.items()) {
      BEV_CHECK(text.is_string(), Data, "{}: __metadata__ has {} that is not a string", source_,
                in_quotes(key));
      result.emplace(key, text.get<std::string>());
    }
    return result;
  }

  StoredTensor tensor(const std::string& name, const Json& entry) const {
    BEV_CHECK(entry.is_object(), Data, "{}: the entry of {} is not an object", source_,
              in_quotes(name));
    StoredTensor tensor{.name = name, .dtype_name = {}, .dtype = {}, .shape = {}};
    const size_t element_bytes = read_type(entry, tensor);
    const size_t bytes = read_shape(entry, tensor, element_bytes);
    read_offsets(entry, tensor);
    BEV_CHECK(tensor.bytes == bytes, Data, "{}: {} is {} {}, {} bytes, but its offsets span {}",
              source_, in_quotes(name), tensor.dtype_name, to_string(tensor.shape), bytes,
              tensor.bytes);
    return tensor;
  }

 private:
  const Json& member(const Json& entry, const StoredTensor& tensor, const char* key) const {
    const auto found = entry.find(key);
    BEV_CHECK(found != entry.end(), Data, "{}: {} has no {}", source_, in_quotes(tensor.name), key);
    return *found;
  }

  size_t read_type(const Json& entry, StoredTensor& tensor) const {
    const Json& value = member(entry, tensor, "dtype");
    BEV_CHECK(value.is_string(), Data, "{}: the dtype of {} is not a string", source_,
              in_quotes(tensor.name));
    tensor.dtype_name = value.get<std::string>();
    const auto type = std::find_if(kFormatTypes.begin(), kFormatTypes.end(),
                                   [&](const auto& t) { return t.name == tensor.dtype_name; });
    BEV_CHECK(type != kFormatTypes.end(), Data, "{}: {} has the unknown dtype {}", source_,
              in_quotes(tensor.name), in_quotes(tensor.dtype_name));
    tensor.dtype = type->dtype;
    return type->bytes;
  }

  // Returns the bytes the shape asks for.
  size_t read_shape(const Json& entry, StoredTensor& tensor, size_t element_bytes) const {
    const Json& value = member(entry, tensor, "shape");
    BEV_CHECK(value.is_array(), Data, "{}: the shape of {} is not an array", source_,
              in_quotes(tensor.name));
    BEV_CHECK(value.size() <= static_cast<size_t>(kMaxRank), Data,
              "{}: {} has {} dims; at most {} are supported", source_, in_quotes(tensor.name),
              value.size(), kMaxRank);
    std::array<int64_t, kMaxRank> extents{};
    // Zeros are left out of the product, so that no order of the extents can make it overflow
    // later.
    auto bytes = static_cast<int64_t>(element_bytes);
    bool empty = false;
    for (size_t dim = 0; dim < value.size(); ++dim) {
      BEV_CHECK(value[dim].is_number_unsigned(), Data,
                "{}: the shape of {} has an extent that is not a whole number of 0 or more",
                source_, in_quotes(tensor.name));
      const auto extent = value[dim].get<uint64_t>();
      BEV_CHECK(
          std::in_range<int64_t>(extent) &&
              !multiply_overflows(bytes, std::max<int64_t>(1, static_cast<int64_t>(extent)), bytes),
          Data, "{}: the shape of {} has more elements than can be counted", source_,
          in_quotes(tensor.name));
      empty = empty || extent == 0;
      extents[dim] = static_cast<int64_t>(extent);
    }
    tensor.shape = make_shape(std::span(extents).first(value.size()));
    return empty ? 0 : static_cast<size_t>(bytes);
  }

  void read_offsets(const Json& entry, StoredTensor& tensor) const {
    const Json& value = member(entry, tensor, "data_offsets");
    BEV_CHECK(value.is_array() && value.size() == 2 && value[0].is_number_unsigned() &&
                  value[1].is_number_unsigned(),
              Data, "{}: data_offsets of {} is not a pair of whole numbers of 0 or more", source_,
              in_quotes(tensor.name));
    const auto begin = value[0].get<uint64_t>();
    const auto end = value[1].get<uint64_t>();
    BEV_CHECK(begin <= end, Data, "{}: {} ends at byte {}, before it begins at {}", source_,
              in_quotes(tensor.name), end, begin);
    BEV_CHECK(end <= data_bytes_, Data, "{}: {} ends at byte {}, but the file has {} bytes of data",
              source_, in_quotes(tensor.name), end, data_bytes_);
    tensor.begin = data_begin_ + begin;
    tensor.bytes = end - begin;
  }

  std::string_view source_;
  size_t data_begin_, data_bytes_;
};

// The format wants every byte of the data to belong to exactly one tensor.
void check_packing(const std::vector<StoredTensor>& tensors, size_t data_begin, size_t file_bytes,
                   std::string_view source) {
  std::vector<const StoredTensor*> order;
  order.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->begin, a->bytes) < std::pair(b->begin, b->bytes);
  });
  size_t end = data_begin;
  for (const StoredTensor* tensor : order) {
    BEV_CHECK(tensor->begin >= end, Data, "{}: {} overlaps the tensor before it", source,
              in_quotes(tensor->name));
    BEV_CHECK(tensor->begin == end, Data, "{}: {} bytes before {} belong to no tensor", source,
              tensor->begin - end, in_quotes(tensor->name));
    end += tensor->bytes;
  }
  BEV_CHECK(end == file_bytes, Data, "{}: the last {} bytes belong to no tensor", source,
            file_bytes - end);
}

// Calls f with a value of the C++ type of `dtype`.
template <class F>
void visit_stored(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: f(double{}); return;
    case DType::f32: f(float{}); return;
    case DType::bf16: f(bf16{}); return;
    case DType::f16: f(f16{}); return;
    case DType::i64: f(int64_t{}); return;
    case DType::i32: f(int32_t{}); return;
    case DType::u8: f(uint8_t{}); return;
  }
}

template <class From, class To>
void convert_loop(std::span<const std::byte> from, std::span<std::byte> to) {
  const size_t count = from.size() / sizeof(From);
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof(From), sizeof(From));
    To converted;
    if constexpr (std::is_same_v<To, double>) {
      converted = static_cast<double>(value);
    } else {
      converted = static_cast<To>(static_cast<float>(value));
    }
    std::memcpy(to.data() + i * sizeof(To), &converted, sizeof(To));
  }
}

}  // namespace

Shape make_shape(std::span<const int64_t> e) {
  switch (e.size()) {
    case 0: return {};
    case 1: return {e[0]};
    case 2: return {e[0], e[1]};
    case 3: return {e[0], e[1], e[2]};
    case 4: return {e[0], e[1], e[2], e[3]};
    default: return {e[0], e[1], e[2], e[3], e[4]};
  }
}

size_t safetensors_data_begin(std::span<const std::byte> head, size_t file_bytes,
                              std::string_view source) {
  BEV_CHECK(file_bytes >= kLengthBytes && head.size() >= kLengthBytes, Data,
            "{}: {} bytes are too few for a safetensors file, which starts with {} bytes of length",
            source, file_bytes, kLengthBytes);
  uint64_t length = 0;
  std::memcpy(&length, head.data(), kLengthBytes);
  BEV_CHECK(length <= SafetensorsReader::kHeaderLimit, Data,
            "{}: the header claims {} bytes; the format allows {}", source, length,
            SafetensorsReader::kHeaderLimit);
  BEV_CHECK(length <= file_bytes - kLengthBytes, Data,
            "{}: the header claims {} bytes, but only {} follow", source, length,
            file_bytes - kLengthBytes);
  return kLengthBytes + static_cast<size_t>(length);
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           std::string_view source) {
  return parse_safetensors_header(file, file.size(), source);
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> head, size_t file_bytes,
                                           std::string_view source) {
  const size_t data_begin = safetensors_data_begin(head, file_bytes, source);
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + kLengthBytes,
                              data_begin - kLengthBytes);
  BEV_CHECK(text.starts_with('{'), Data, "{}: the header does not start with '{{'", source);

  // Object, entry, array: a header has no use for more than three levels.
  const Json header = parse_json(text, format("{}, header", source),
                                 {.bytes = SafetensorsReader::kHeaderLimit, .depth = 3});
  const HeaderReader reader(source, data_begin, file_bytes - data_begin);
  SafetensorsHeader result;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      result.metadata = reader.metadata(entry);
    } else {
      result.tensors.push_back(reader.tensor(name, entry));
    }
  }
  check_packing(result.tensors, data_begin, file_bytes, source);
  return result;
}

std::string safetensors_header(std::span<const TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + Json(metadata).dump() + ",";
  size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    std::string extents;
    for (int dim = 0; dim < tensor.shape.rank(); ++dim) {
      extents += (dim > 0 ? "," : "") + std::to_string(tensor.shape[dim]);
    }
    const size_t end =
        offset + static_cast<size_t>(tensor.shape.elements()) * size_of(tensor.dtype);
    text += format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                   Json(tensor.name).dump(), format_type(tensor.dtype).name, extents, offset, end);
    offset = end;
  }
  if (text.back() == ',') text.pop_back();
  text += "}";
  text.append(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), 8)) - text.size(),
              ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + text;
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(path) {
  SafetensorsHeader header = parse_safetensors_header(file_.bytes(), path.string());
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

const StoredTensor* SafetensorsReader::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

const StoredTensor& SafetensorsReader::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  BEV_CHECK(tensor != nullptr, Data, "{}: there is no tensor {}", path().string(), in_quotes(name));
  return *tensor;
}

std::span<const std::byte> SafetensorsReader::bytes(const StoredTensor& tensor) const {
  return file_.bytes().subspan(tensor.begin, tensor.bytes);
}

DType SafetensorsReader::dtype_of(const StoredTensor& tensor) const {
  BEV_CHECK(tensor.dtype.has_value(), Data,
            "{}: {} is stored as {}, which is not one of F64, F32, BF16, F16, I64, I32, U8",
            path().string(), in_quotes(tensor.name), tensor.dtype_name);
  return *tensor.dtype;
}

std::vector<double> SafetensorsReader::read_f64(const StoredTensor& tensor) const {
  const DType dtype = dtype_of(tensor);
  std::vector<double> values(tensor.bytes / size_of(dtype));
  convert_elements(bytes(tensor), dtype, std::as_writable_bytes(std::span(values)), DType::f64);
  return values;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorToWrite> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : tensors_(std::move(tensors)), file_(path) {
  const auto place = [](const TensorToWrite& t) {
    return std::pair(&format_type(t.dtype) - kFormatTypes.data(), std::string_view(t.name));
  };
  std::sort(tensors_.begin(), tensors_.end(),
            [&](const TensorToWrite& a, const TensorToWrite& b) { return place(a) < place(b); });
  file_.write(safetensors_header(tensors_, metadata));
  for (const TensorToWrite& tensor : tensors_)
    left_ += static_cast<size_t>(tensor.shape.elements()) * size_of(tensor.dtype);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  BEV_CHECK(bytes.size() <= left_, Internal, "{} bytes more than a file's arrays have",
            bytes.size() - left_);
  left_ -= bytes.size();
  file_.write(bytes);
}

void SafetensorsWriter::finish() {
  BEV_CHECK(left_ == 0, Internal, "a file's arrays lack {} bytes", left_);
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                       FunctionRef<void(const TensorToWrite&, std::span<std::byte>)> fill,
                       const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter file(path, std::move(tensors), metadata);
  std::vector<std::byte> buffer;
  for (const TensorToWrite& tensor : file.tensors()) {
    buffer.resize(static_cast<size_t>(tensor.shape.elements()) * size_of(tensor.dtype));
    fill(tensor, buffer);
    file.write(buffer);
  }
  file.finish();
}

void stream_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                        FunctionRef<void(const TensorToWrite&, PutBytes put)> produce,
                        const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter file(path, std::move(tensors), metadata);
  for (const TensorToWrite& tensor : file.tensors()) {
    size_t left = static_cast<size_t>(tensor.shape.elements()) * size_of(tensor.dtype);
    produce(tensor, [&](std::span<const std::byte> bytes) {
      BEV_CHECK(bytes.size() <= left, Internal, "{}: {} gets more bytes than it has", path.string(),
                tensor.name);
      left -= bytes.size();
      file.write(bytes);
    });
    BEV_CHECK(left == 0, Internal, "{}: {} lacks {} bytes", path.string(), tensor.name, left);
  }
  file.finish();
}

void convert_elements(std::span<const std::byte> from, DType from_dtype, std::span<std::byte> to,
                      DType to_dtype) {
  BEV_CHECK(from.size() / size_of(from_dtype) == to.size() / size_of(to_dtype), Internal,
            "{} bytes of {} do not fill {} bytes of {}", from.size(), name_of(from_dtype),
            to.size(), name_of(to_dtype));
  if (from_dtype == to_dtype) {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  BEV_CHECK(is_floating(to_dtype), Internal, "values are not converted from {} to {}",
            name_of(from_dtype), name_of(to_dtype));
  visit_stored(from_dtype, [&](auto source) {
    visit_stored(to_dtype, [&](auto target) {
      if constexpr (!std::is_integral_v<decltype(target)>) {
        convert_loop<decltype(source), decltype(target)>(from, to);
      }
    });
  });
}

}  // namespace bev
