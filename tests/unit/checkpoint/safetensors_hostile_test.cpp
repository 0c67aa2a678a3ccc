// Files that lie. Each is refused with one Data error that names the file and says what is wrong;
// none is believed far enough to read outside the file.
#include <gtest/gtest.h>

#include <cstring>

#include "base/philox.h"
#include "checkpoint/safetensors.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;

std::string file_of(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  return file + header + std::string(data_bytes, 'd');
}

std::string with_length(uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + rest;
}

SafetensorsHeader parse_header(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file.data(), file.size())), "the file");
}

// One F32 tensor "a" of shape [2] whose entry is given.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

struct Hostile {
  std::string name, file, message;
};

// Each line fails when the check behind its message is removed.
std::vector<Hostile> hostile_files() {
  const std::string good = entry("\"F32\"", "[2]", "[0,8]");
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
  };
  return {
      {"empty", "", "0 bytes are too few"},
      {"length_cut", std::string("\x01\x00\x00", 3), "3 bytes are too few"},
      {"length_only", with_length(2, ""), "only 0 follow"},
      {"header_longer_than_file", with_length(good.size() + 9, good + std::string(8, 'd')),
       "the header claims"},
      {"header_length_of_all_ones", with_length(~uint64_t{0}, good), "the format allows 100000000"},
      {"header_length_wraps", with_length(~uint64_t{0} - 7, good), "the format allows"},
      {"header_over_the_limit", with_length(100'000'001, good), "the format allows"},
      {"header_of_nothing", file_of("", 0), "does not start with '{'"},
      {"header_is_an_array", file_of("[]", 0), "does not start with '{'"},
      {"header_starts_with_a_blank", file_of(" " + good, 8), "does not start with '{'"},
      {"header_is_binary", file_of(std::string("\x80\x02\x7d\x71", 4), 0), "does not start with"},
      {"json_cut", file_of(good.substr(0, good.size() - 1), 8), "not valid JSON at byte"},
      {"json_and_more", file_of(good + "{}", 8), "not valid JSON at byte"},
      {"zero_bytes_behind_the_json", file_of(good + std::string(3, '\0'), 8), "not valid JSON"},
      {"not_utf8",
       file_of("{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
       "not valid JSON"},
      {"name_twice", file_of("{" + good.substr(1, good.size() - 2) + "," + good.substr(1), 8),
       "\"a\" stands twice"},
      {"dtype_twice",
       file_of(R"({"a":{"dtype":"F32","dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8),
       "\"dtype\" stands twice"},
      {"deep", file_of("{\"a\":" + std::string(10000, '['), 0), "deeper than 3"},
      {"deep_shape", file_of(entry("\"F32\"", "[[2]]", "[0,8]"), 8), "deeper than 3"},
      {"entry_is_a_number", file_of(R"({"a":1})", 0), "is not an object"},
      {"no_dtype", file_of(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "has no dtype"},
      {"no_shape", file_of(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "has no shape"},
      {"no_offsets", file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "has no data_offsets"},
      {"dtype_is_a_number", file_of(entry("32", "[2]", "[0,8]"), 8),
       "dtype of \"a\" is not a string"},
      {"dtype_unknown", file_of(entry("\"F99\"", "[2]", "[0,8]"), 8), "unknown dtype \"F99\""},
      {"dtype_in_lower_case", file_of(entry("\"f32\"", "[2]", "[0,8]"), 8),
       "unknown dtype \"f32\""},
      {"shape_is_a_number", file_of(entry("\"F32\"", "2", "[0,8]"), 8),
       "shape of \"a\" is not an array"},
      {"shape_negative", file_of(entry("\"F32\"", "[-2]", "[0,8]"), 8), "not a whole number"},
      {"shape_fraction", file_of(entry("\"F32\"", "[2.0]", "[0,8]"), 8), "not a whole number"},
      {"shape_text", file_of(entry("\"F32\"", "[\"2\"]", "[0,8]"), 8), "not a whole number"},
      {"shape_of_six", file_of(entry("\"F32\"", "[1,1,1,1,1,2]", "[0,8]"), 8), "has 6 dims"},
      {"shape_overflows", file_of(entry("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0),
       "more elements than"},
      {"shape_overflows_to_the_right_size",
       file_of(entry("\"F32\"", "[4611686018427387906]", "[0,8]"), 8), "more elements than"},
      {"shape_beyond_int64", file_of(entry("\"U8\"", "[9223372036854775808]", "[0,0]"), 0),
       "more elements than"},
      {"shape_beyond_uint64", file_of(entry("\"U8\"", "[18446744073709551616]", "[0,0]"), 0),
       "not a whole number"},
      {"shape_overflows_before_a_zero",
       file_of(entry("\"U8\"", "[4294967296,4294967296,0]", "[0,0]"), 0), "more elements than"},
      {"shape_smaller_than_offsets", file_of(entry("\"F32\"", "[1]", "[0,8]"), 8),
       "4 bytes, but its offsets span 8"},
      {"shape_larger_than_offsets", file_of(entry("\"F32\"", "[3]", "[0,8]"), 8),
       "12 bytes, but its offsets span 8"},
      {"offsets_of_one", file_of(entry("\"F32\"", "[2]", "[8]"), 8), "not a pair"},
      {"offsets_of_three", file_of(entry("\"F32\"", "[2]", "[0,8,8]"), 8), "not a pair"},
      {"offsets_negative", file_of(entry("\"F32\"", "[2]", "[-8,0]"), 8), "not a pair"},
      {"offsets_fraction", file_of(entry("\"F32\"", "[2]", "[0,8.0]"), 8), "not a pair"},
      {"offsets_reversed", file_of(entry("\"F32\"", "[2]", "[8,0]"), 8), "before it begins"},
      {"offsets_beyond_the_file", file_of(entry("\"F32\"", "[2]", "[8,16]"), 8),
       "ends at byte 16, but the file has 8"},
      {"offsets_wrap",
       file_of(entry("\"F32\"", "[2]", "[18446744073709551608,18446744073709551615]"), 8),
       "but the file has 8"},
      {"data_cut", file_of(good, 7), "ends at byte 8, but the file has 7"},
      {"bytes_behind_the_last", file_of(good, 9), "last 1 bytes belong to no tensor"},
      {"data_without_tensors", file_of("{}", 5), "last 5 bytes belong to no tensor"},
      {"overlap", file_of(two("[0,4]", "[2,6]"), 6), "\"b\" overlaps"},
      {"the_same_place_twice", file_of(two("[0,4]", "[0,4]"), 4), "overlaps"},
      {"hole", file_of(two("[0,4]", "[6,10]"), 10), "2 bytes before \"b\" belong to no tensor"},
      {"hole_at_the_start", file_of(entry("\"F32\"", "[2]", "[4,12]"), 12), "4 bytes before \"a\""},
      {"metadata_is_text", file_of(R"({"__metadata__":"pt"})", 0), "__metadata__ is not an object"},
      {"metadata_holds_a_number", file_of(R"({"__metadata__":{"format":1}})", 0),
       "\"format\" that is not a string"},
      {"metadata_holds_null", file_of(R"({"__metadata__":{"x":null}})", 0), "not a string"},
  };
}

class HostileSafetensors : public testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, IsRefusedWithOneDataError) {
  const std::string message =
      expect_error(ErrorKind::Data, GetParam().message, [&] { parse_header(GetParam().file); });
  EXPECT_EQ(message.rfind("the file", 0), 0u) << "does not name the file: " << message;
}

INSTANTIATE_TEST_SUITE_P(Kinds, HostileSafetensors, testing::ValuesIn(hostile_files()),
                         [](const auto& kind) { return kind.param.name; });

// Fails when the checks refuse what the format allows.
TEST(HostileSafetensors, HarmlessOdditiesAreAccepted) {
  EXPECT_NO_THROW(parse_header(file_of("{}", 0)));
  EXPECT_NO_THROW(parse_header(file_of("{}      ", 0)));
  EXPECT_NO_THROW(parse_header(file_of(R"({"__metadata__":{}})", 0)));
  EXPECT_NO_THROW(parse_header(file_of(entry("\"F32\"", "[]", "[0,4]"), 4)));
  EXPECT_NO_THROW(parse_header(file_of(entry("\"F32\"", "[0]", "[0,0]"), 0)));
  EXPECT_NO_THROW(
      parse_header(file_of(R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1)));
  EXPECT_NO_THROW(parse_header(
      file_of(R"({"a":{"data_offsets":[0,1],"more":1,"shape":[1],"dtype":"U8"}})", 1)));
}

// Fails when a type of the format that we cannot read makes the whole file unreadable, or is read.
TEST(HostileSafetensors, ForeignTypesAreListedButNotRead) {
  const SafetensorsHeader header = parse_header(file_of(entry("\"BOOL\"", "[3]", "[0,3]"), 3));
  ASSERT_EQ(header.tensors.size(), 1u);
  EXPECT_FALSE(header.tensors[0].dtype.has_value());
  EXPECT_EQ(header.tensors[0].dtype_name, "BOOL");
}

// Changes a good file in ten thousand ways: what is still accepted lies inside the file. Fails when
// one of the range checks is removed (then a tensor leaves the file) or when an exception of the
// JSON library escapes.
TEST(HostileSafetensors, MutationsAreRefusedOrStayInsideTheFile) {
  const std::string good = file_of(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})",
      32);
  ASSERT_EQ(parse_header(good).tensors.size(), 2u);
  const std::string alphabet = "0123456789-{}[]\",:.eE aF\\\x80";
  int accepted = 0;
  for (uint64_t round = 0; round < 10000; ++round) {
    const PhiloxBlock draw = philox(1, 0, round);
    std::string file = good;
    for (uint32_t change = 0; change <= draw[0] % 3; ++change) {
      const PhiloxBlock d = philox(2, round, change);
      // Half of the changes hit the header's first bytes and numbers, where lies do most harm.
      const size_t at = d[0] % (d[1] % 2 == 0 ? file.size() : std::min<size_t>(file.size(), 16));
      switch (d[2] % 5) {
        case 0: file[at] = alphabet[d[3] % alphabet.size()]; break;
        case 1: file[at] = static_cast<char>(d[3]); break;
        case 2: file.erase(at, 1 + d[3] % 9); break;
        case 3: file.insert(at, 1, alphabet[d[3] % alphabet.size()]); break;
        default: file.resize(at); break;
      }
      if (file.empty()) break;
    }
    try {
      const SafetensorsHeader header = parse_header(file);
      ++accepted;
      for (const StoredTensor& t : header.tensors) {
        ASSERT_LE(t.begin, file.size());
        ASSERT_LE(t.bytes, file.size() - t.begin);
        ASSERT_TRUE(!t.dtype ||
                    static_cast<size_t>(t.shape.elements()) * size_of(*t.dtype) == t.bytes);
      }
    } catch (const Error& e) {
      ASSERT_EQ(e.kind, ErrorKind::Data) << e.what();
    }
  }
  EXPECT_GT(accepted, 0);     // changes of names and data are harmless
  EXPECT_LT(accepted, 9000);  // most are not
}

}  // namespace
}  // namespace bev
