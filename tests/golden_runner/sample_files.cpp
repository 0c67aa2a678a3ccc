#include "golden_runner/sample_files.h"

#include <array>
#include <cstring>

#include "base/check.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

template <class T>
std::vector<int64_t> widened(std::span<const std::byte> bytes) {
  std::vector<int64_t> values;
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    values.push_back(static_cast<int64_t>(value));
  }
  return values;
}

// By the names of safetensors and of NumPy.
std::vector<int64_t> widened(std::span<const std::byte> bytes, const std::string& type) {
  if (type == "I16" || type == "<i2") return widened<int16_t>(bytes);
  if (type == "I32" || type == "<i4") return widened<int32_t>(bytes);
  if (type == "I64" || type == "<i8") return widened<int64_t>(bytes);
  if (type == "U32" || type == "<u4") return widened<uint32_t>(bytes);
  if (type == "U64" || type == "<u8") return widened<uint64_t>(bytes);
  throw Error(ErrorKind::Data, "integers of type " + type);
}

}  // namespace

std::vector<int64_t> read_integers(const SafetensorsReader& reader, const std::string& name) {
  const StoredTensor& tensor = reader.at(name);
  return widened(reader.bytes(tensor), tensor.dtype_name);
}

std::vector<int64_t> read_npy(const fs::path& path) {
  const MappedFile file(path);
  const std::span<const std::byte> all = file.bytes();
  BEV_CHECK(all.size() > 10 && std::memcmp(all.data(), "\x93NUMPY\x01", 7) == 0, Data,
            "{} is not an array of NumPy's", path.string());
  uint16_t header_bytes = 0;
  std::memcpy(&header_bytes, all.data() + 8, sizeof(header_bytes));
  const std::string header(reinterpret_cast<const char*>(all.data()) + 10, header_bytes);
  const std::string key = "'descr': '";
  const size_t begin = header.find(key);
  BEV_CHECK(begin != std::string::npos, Data, "{} has no type", path.string());
  return widened(all.subspan(10 + size_t{header_bytes}), header.substr(begin + key.size(), 3));
}

std::shared_ptr<const TokenFile> open_tokens(const fs::path& samples_dir,
                                             const std::string& prefix) {
  return std::make_shared<TokenFile>(samples_dir.parent_path() / "data" / prefix);
}

SequenceRange range_of(const TokenFile& file, const std::string& split, size_t number) {
  const auto weights = parse_split(split);
  BEV_CHECK(weights.has_value(), Data, "the split {} is not understood", split);
  return split_sequences(*weights, file.index().sequences(), Compat::Main)[number];
}

std::optional<int64_t> optional_integer(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<int64_t>();
}

std::vector<int64_t> flat_starts(const MegatronIndex& index) {
  std::vector<int64_t> flat;
  for (const MegatronIndex::Start& start : index.starts) {
    flat.push_back(start.document);
    flat.push_back(start.offset);
  }
  return flat;
}

HostBatch read_sample(const Dataset& samples, int64_t index, int64_t length, bool packed) {
  HostBatch batch;
  batch.resize(1, length, packed);
  samples.read(index, batch, 0);
  return batch;
}

std::vector<int32_t> text_of(const HostBatch& batch) {
  std::vector<int32_t> text = batch.tokens;
  text.push_back(batch.targets.back());
  return text;
}

std::string digits_of(const std::vector<float>& weights) {
  std::string digits;
  for (const float weight : weights) digits += weight == 1.0f ? '1' : weight == 0.0f ? '0' : '?';
  return digits;
}

}  // namespace bev::golden
