#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <map>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;
using test::TemporaryDirectory;

template <class T>
std::vector<std::byte> bytes_from(const std::vector<T>& values) {
  const auto span = std::as_bytes(std::span(values));
  return {span.begin(), span.end()};
}

struct Content {
  TensorToWrite tensor;
  std::vector<std::byte> bytes;
};

void write_all(const std::filesystem::path& path, const std::vector<Content>& contents,
               const std::map<std::string, std::string>& metadata = {{"format", "pt"}}) {
  std::vector<TensorToWrite> list;
  for (const Content& content : contents) list.push_back(content.tensor);
  write_safetensors(
      path, list,
      [&](const TensorToWrite& tensor, std::span<std::byte> to) {
        for (const Content& content : contents) {
          if (content.tensor.name != tensor.name) continue;
          ASSERT_EQ(to.size(), content.bytes.size());
          std::copy(content.bytes.begin(), content.bytes.end(), to.begin());
        }
      },
      metadata);
}

// What the format's own library writes for these four tensors.
const std::string kTheirHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]},)"
    R"("empty":{"dtype":"F32","shape":[0,4],"data_offsets":[12,12]},)"
    R"("i":{"dtype":"I32","shape":[],"data_offsets":[12,16]},)"
    R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]}}     )";
constexpr std::array<unsigned char, 20> kTheirData{0x00, 0x00, 0x80, 0x3f, 0x00, 0x00, 0x00,
                                                   0x40, 0x00, 0x00, 0x40, 0x40, 0x07, 0x00,
                                                   0x00, 0x00, 0xc0, 0x3f, 0x00, 0xc0};

std::string their_file() {
  const uint64_t length = kTheirHeader.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  file += kTheirHeader;
  file.append(reinterpret_cast<const char*>(kTheirData.data()), kTheirData.size());
  return file;
}

std::vector<Content> four_tensors() {
  std::vector<Content> contents;
  const auto add = [&](const char* name, DType dtype, const Shape& shape,
                       std::vector<std::byte> bytes) {
    contents.push_back({{name, dtype, shape}, std::move(bytes)});
  };
  add("b", DType::bf16, {2}, bytes_from(std::vector{bf16(1.5f), bf16(-2.0f)}));
  add("a", DType::f32, {1, 3}, bytes_from(std::vector{1.0f, 2.0f, 3.0f}));
  add("empty", DType::f32, {0, 4}, {});
  add("i", DType::i32, {}, bytes_from(std::vector<int32_t>{7}));
  return contents;
}

// Fails when the order of tensors, the order of names inside an entry, the padding or the blanks
// differ from the format's own library.
TEST(Safetensors, WritesTheBytesOfTheFormatsOwnLibrary) {
  const TemporaryDirectory dir;
  write_all(dir / "ours", four_tensors());
  EXPECT_EQ(read_text(dir / "ours"), their_file());
}

// Fails when a scalar is taken for an absent tensor, or an offset is counted from the wrong byte.
TEST(Safetensors, ReadsTheBytesOfTheFormatsOwnLibrary) {
  const TemporaryDirectory dir;
  AtomicFile file(dir / "theirs");
  file.write(their_file());
  file.commit();
  const SafetensorsReader reader(dir / "theirs");
  ASSERT_EQ(reader.tensors().size(), 4u);
  EXPECT_EQ(reader.tensors()[0].name, "a");
  EXPECT_EQ(reader.tensors()[1].name, "b");
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.read_f64(reader.at("a")), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(reader.read_f64(reader.at("b")), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(reader.read_f64(reader.at("i")), (std::vector<double>{7}));
  EXPECT_EQ(reader.at("i").shape.rank(), 0);
  EXPECT_TRUE(reader.read_f64(reader.at("empty")).empty());
  EXPECT_EQ(reader.find("c"), nullptr);
  expect_error(ErrorKind::Data, "no tensor \"c\"", [&] { reader.at("c"); });
}

// Fails when any dtype is written under another's name or size.
TEST(Safetensors, EveryTypeGoesThroughAFile) {
  const TemporaryDirectory dir;
  const std::vector<Content> contents{
      {{"f64", DType::f64, {2}}, bytes_from(std::vector<double>{0.1, -3})},
      {{"f32", DType::f32, {2}}, bytes_from(std::vector<float>{0.5f, -3})},
      {{"bf16", DType::bf16, {2}}, bytes_from(std::vector{bf16(0.5f), bf16(-3)})},
      {{"f16", DType::f16, {2}}, bytes_from(std::vector{f16(0.5f), f16(-3)})},
      {{"i64", DType::i64, {2}}, bytes_from(std::vector<int64_t>{1, -3})},
      {{"i32", DType::i32, {2}}, bytes_from(std::vector<int32_t>{1, -3})},
      {{"u8", DType::u8, {2}}, bytes_from(std::vector<uint8_t>{1, 253})},
  };
  write_all(dir / "all", contents, {});
  const SafetensorsReader reader(dir / "all");
  EXPECT_TRUE(reader.metadata().empty());
  for (const Content& content : contents) {
    const StoredTensor& stored = reader.at(content.tensor.name);
    EXPECT_EQ(stored.dtype, content.tensor.dtype);
    EXPECT_EQ(stored.begin % size_of(content.tensor.dtype), 0u) << "not aligned";
    const auto bytes = reader.bytes(stored);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), content.bytes.begin(), content.bytes.end()));
  }
}

// Fails when two writes of the same content differ, or when a rewrite of what was read does.
TEST(Safetensors, SecondGenerationHasTheSameBytes) {
  const TemporaryDirectory dir;
  std::vector<Content> contents = four_tensors();
  write_all(dir / "first", contents);
  const SafetensorsReader reader(dir / "first");
  std::vector<Content> again;
  for (const StoredTensor& stored : reader.tensors()) {
    const auto bytes = reader.bytes(stored);
    again.push_back({{stored.name, *stored.dtype, stored.shape}, {bytes.begin(), bytes.end()}});
  }
  write_all(dir / "second", again, reader.metadata());
  EXPECT_EQ(read_text(dir / "first"), read_text(dir / "second"));
}

// Fails when names are put into the header without escapes.
TEST(Safetensors, AnyNameComesBack) {
  const TemporaryDirectory dir;
  const std::string name = "quote \" backslash \\ newline \n tab \t \xc3\xa9 {},:[]";
  write_all(dir / "f", {{{name, DType::u8, {1}}, bytes_from(std::vector<uint8_t>{9})}});
  EXPECT_EQ(SafetensorsReader(dir / "f").tensors().front().name, name);
}

// Fails when the conversion reads through a typed pointer: byte 1 is aligned for nothing.
TEST(Safetensors, ConversionNeedsNoAlignment) {
  std::vector<std::byte> shifted(1 + 3 * sizeof(double));
  const std::array<double, 3> values{0.1, -2.5, 1e300};
  std::memcpy(shifted.data() + 1, values.data(), sizeof values);
  std::array<float, 3> floats{};
  convert_elements(std::span(shifted).subspan(1), DType::f64,
                   std::as_writable_bytes(std::span(floats)), DType::f32);
  EXPECT_EQ(floats[0], 0.1f);
  EXPECT_EQ(floats[1], -2.5f);
  EXPECT_TRUE(std::isinf(floats[2]));
}

// Fails when a disk error leaves half a file under the name, or the temporary file beside it.
TEST(Safetensors, ADiskErrorLeavesNothing) {
  const TemporaryDirectory dir;
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 1000, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<Content> contents{
      {{"x", DType::u8, {5000}}, std::vector<std::byte>(5000, std::byte{1})}};
  expect_error(ErrorKind::Data, "cannot write", [&] { write_all(dir / "f", contents); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace bev
