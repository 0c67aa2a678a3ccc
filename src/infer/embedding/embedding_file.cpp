#include "infer/embedding/embedding_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/json.h"

namespace bev {

namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Removes `token` from the beginning.
bool take(std::string_view& text, std::string_view token) {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(token.size());
  return true;
}

bool take_number(std::string_view& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc{} && number > 0;
}

// The shape in the header's text, a dictionary in the notation of Python:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 8), }. Writers order the keys so, and
// differ in blanks, quotes and the last commas.
std::optional<NpyHeader> parse_shape(std::string_view dictionary) {
  std::string text;
  for (const char c : dictionary)
    if (c != ' ' && c != '\n') text += c == '"' ? '\'' : c;
  std::string_view left = text;
  NpyHeader header;
  const bool is_matrix = take(left, "{'descr':'<f4','fortran_order':False,'shape':(") &&
                         take_number(left, header.rows) && take(left, ",") &&
                         take_number(left, header.width);
  take(left, ",");
  const bool is_closed = take(left, ")");
  take(left, ",");
  if (!is_matrix || !is_closed || left != "}") return std::nullopt;
  return header;
}

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i)
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return value;
}

}  // namespace

std::string npy_header(int64_t rows, int64_t width) {
  std::string text =
      format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, width);
  const size_t before = kNpyMagic.size() + 4;  // version and length
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  const std::string sizes{'\x01', '\x00', static_cast<char>(text.size() & 0xFF),
                          static_cast<char>(text.size() >> 8)};
  return std::string(kNpyMagic) + sizes + text;
}

NpyHeader parse_npy_header(std::span<const std::byte> begin, uint64_t file_bytes,
                           const std::string& name) {
  const std::string_view file(reinterpret_cast<const char*>(begin.data()), begin.size());
  BEV_CHECK(file.size() >= 12 && file.starts_with(kNpyMagic), Data,
            "{} is not a NumPy file (.npy)\nexpected embeddings that `bevatron embed` wrote", name);
  const auto version = static_cast<unsigned char>(file[6]);
  BEV_CHECK(version >= 1 && version <= 3, Data,
            "{}: version {} of the NumPy format\nexpected 1, 2 or 3", name, version);
  const size_t text_begin = version == 1 ? 10 : 12;
  const uint32_t text_bytes = little_endian(file.substr(8, text_begin - 8));
  BEV_CHECK(text_bytes <= std::min(file.size(), kNpyHeaderBytes) - text_begin, Data,
            "{}: its header has {} bytes, more than the file or than the {} that are read", name,
            text_bytes, kNpyHeaderBytes);
  const std::string_view text = file.substr(text_begin, text_bytes);
  const std::optional<NpyHeader> header = parse_shape(text);
  BEV_CHECK(header, Data,
            "{}: its header is {}, expected an array [rows, width] of float32 in C order\n"
            "numpy.save(FILE, numpy.ascontiguousarray(array, 'float32')) writes that",
            name, in_quotes(text));
  NpyHeader result = *header;
  result.data_begin = text_begin + text_bytes;
  BEV_CHECK(result.data_begin % sizeof(float) == 0, Data,
            "{}: its rows begin at byte {}, expected a multiple of {}", name, result.data_begin,
            sizeof(float));
  const uint64_t row_bytes = static_cast<uint64_t>(result.width) * sizeof(float);
  const uint64_t data_bytes = file_bytes - result.data_begin;
  BEV_CHECK(static_cast<uint64_t>(result.width) <= data_bytes / sizeof(float) &&
                data_bytes % row_bytes == 0 &&
                data_bytes / row_bytes == static_cast<uint64_t>(result.rows),
            Data,
            "{}: {} bytes after the header are not {} rows of {} float32\n"
            "the file is cut off or damaged: copy it again, or embed the texts again",
            name, data_bytes, result.rows, result.width);
  return result;
}

EmbeddingFile::EmbeddingFile(const std::filesystem::path& path)
    : file_(path),
      header_(parse_npy_header(file_.bytes().first(std::min(file_.bytes().size(), kNpyHeaderBytes)),
                               file_.bytes().size(), path.string())) {}

size_t EmbeddingFile::offset_of(int64_t row) const {
  return header_.data_begin + static_cast<size_t>(row * width()) * sizeof(float);
}

std::span<const float> EmbeddingFile::read(int64_t begin, int64_t end) const {
  return {reinterpret_cast<const float*>(file_.bytes().data() + offset_of(begin)),
          static_cast<size_t>((end - begin) * width())};
}

void EmbeddingFile::prefetch(int64_t begin, int64_t end) const {
  file_.prefetch(offset_of(begin), offset_of(end) - offset_of(begin));
}

void EmbeddingFile::release(int64_t begin, int64_t end) const {
  file_.release(offset_of(begin), offset_of(end) - offset_of(begin));
}

}  // namespace bev
