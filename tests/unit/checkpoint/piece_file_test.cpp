#include "checkpoint/piece_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "support/expect_error.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;
using test::TemporaryDirectory;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

std::vector<TensorPiece> three_pieces() {
  return {{"whole", DType::f32, {2, 3}, {.rows = 2, .columns = 3}},
          {"rows", DType::bf16, {8}, {.row = 2, .rows = 5, .columns = 1}},
          {"layers.0.up/adam.m",
           DType::f64,
           {4, 2, 3},
           {.row = 1, .column = 2, .rows = 2, .columns = 3}}};
}

std::string data_for(const std::vector<TensorPiece>& pieces) {
  std::string data;
  for (const TensorPiece& piece : pieces)
    for (size_t i = 0; i < piece.bytes(); ++i) data += static_cast<char>(data.size() * 31 + 5);
  return data;
}

TEST(PieceFile, NamesSayWhereACutPieceBegins) {
  const std::vector<TensorPiece> pieces = three_pieces();
  EXPECT_EQ(pieces[0].name_in_file(), "whole");
  EXPECT_EQ(pieces[1].name_in_file(), "rows@2,0");
  EXPECT_EQ(pieces[2].name_in_file(), "layers.0.up/adam.m@1,2");
  const TensorPiece scalar{"scalar", DType::f32, {}, {.rows = 1, .columns = 1}};
  EXPECT_EQ(scalar.name_in_file(), "scalar");
}

TEST(PieceFile, ComesBackAsItWas) {
  const TemporaryDirectory folder;
  const std::vector<TensorPiece> pieces = three_pieces();
  const std::string data = data_for(pieces);
  // Portions end within pieces, at their ends and beyond several.
  for (const size_t portion : {size_t{1}, size_t{7}, size_t{24}, data.size()}) {
    PieceFileWriter writer(folder / "a.safetensors", pieces);
    for (size_t at = 0; at < data.size(); at += portion)
      writer.write(bytes_of(data).subspan(at, std::min(portion, data.size() - at)));
    const CheckpointFile entry = writer.finish();
    EXPECT_EQ(entry.name, "a.safetensors");
    EXPECT_TRUE(entry.holds_pieces);
    EXPECT_EQ(entry.bytes, std::filesystem::file_size(folder / "a.safetensors"));

    const PositionedFile file(folder / "a.safetensors");
    size_t found_pieces = 0;
    for (const PieceInFile& found : read_piece_header(file, entry)) {
      const auto source = std::find_if(pieces.begin(), pieces.end(), [&](const TensorPiece& p) {
        return p.tensor == found.piece.tensor;
      });
      ASSERT_NE(source, pieces.end());
      EXPECT_EQ(found.piece.dtype, source->dtype);
      EXPECT_EQ(found.piece.shape, source->shape);
      EXPECT_EQ(found.piece.where, source->where);
      size_t before = 0;
      for (auto p = pieces.begin(); p != source; ++p) before += p->bytes();
      std::vector<std::byte> content(found.piece.bytes());
      file.read(found.begin, content);
      EXPECT_EQ(std::memcmp(content.data(), data.data() + before, content.size()), 0);
      EXPECT_EQ(found.checksum, checksum_of(content));
      ++found_pieces;
    }
    EXPECT_EQ(found_pieces, pieces.size());
  }
}

TEST(PieceFile, IsPlainSafetensors) {
  const TemporaryDirectory folder;
  const std::vector<TensorPiece> pieces = three_pieces();
  const std::string data = data_for(pieces);
  PieceFileWriter writer(folder / "a.safetensors", pieces);
  writer.write(bytes_of(data));
  const CheckpointFile entry = writer.finish();
  const SafetensorsReader reader(folder / "a.safetensors");
  EXPECT_EQ(reader.at("whole").shape, (Shape{2, 3}));
  EXPECT_EQ(reader.at("rows@2,0").shape, (Shape{5}));
  EXPECT_EQ(reader.at("layers.0.up/adam.m@1,2").shape, (Shape{2, 3}));
  EXPECT_EQ(reader.at("rows@2,0").dtype, DType::bf16);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.metadata().at("written_by"), "bevatron");
  const Json about = parse_json(reader.metadata().at("rows@2,0"), "metadata");
  EXPECT_EQ(about.at("tensor"), "rows");
  EXPECT_EQ(about.at("shape"), Json({8}));
  EXPECT_EQ(about.at("offset"), Json({2, 0}));
  EXPECT_EQ(about.at("xxh3"), checksum_text(checksum_of(reader.bytes(reader.at("rows@2,0")))));
  const size_t header = reader.at("whole").begin;
  const std::string text = read_text(folder / "a.safetensors");
  EXPECT_EQ(entry.checksum, checksum_of(text.substr(0, header)));
}

TEST(PieceFile, MayHoldNothing) {
  const TemporaryDirectory folder;
  const CheckpointFile entry = PieceFileWriter(folder / "a.safetensors", {}).finish();
  EXPECT_TRUE(read_piece_header(PositionedFile(folder / "a.safetensors"), entry).empty());
}

TEST(PieceFile, IsUsedAsItShould) {
  const TemporaryDirectory folder;
  const auto path = folder / "a.safetensors";
  const TensorPiece piece{"a", DType::f32, {4}, {.row = 1, .rows = 2, .columns = 1}};
  const auto refused = [&](TensorPiece wrong) {
    expect_error(ErrorKind::Internal, "a.safetensors",
                 [&] { const PieceFileWriter writer(path, {std::move(wrong)}); });
  };
  expect_error(ErrorKind::Internal, "twice",
               [&] { const PieceFileWriter writer(path, {piece, piece}); });
  refused({"a", DType::f32, {4}, {.row = 1, .rows = 0, .columns = 1}});
  refused({"a", DType::f32, {4}, {.row = 3, .rows = 2, .columns = 1}});
  refused({"a", DType::f32, {4}, {.row = -1, .rows = 2, .columns = 1}});
  for (const char* name : {"format", "written_by", "__metadata__"})
    refused({name, DType::f32, {1}, {.rows = 1, .columns = 1}});

  PieceFileWriter writer(path, {piece});
  writer.write(bytes_of("1234567"));
  expect_error(ErrorKind::Internal, "0 of 1 pieces", [&] { writer.finish(); });
  expect_error(ErrorKind::Internal, "more bytes", [&] { writer.write(bytes_of("89")); });
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A header, whose JSON may be changed before it is parsed.
std::string changed_header(const std::function<void(Json& array, Json& about)>& change) {
  Json about{{"tensor", "a"}, {"shape", {4, 3}}, {"offset", {1, 1}}, {"xxh3", "0123456789abcdef"}};
  Json array{{"dtype", "F32"}, {"shape", {2, 2}}, {"data_offsets", {0, 16}}};
  change(array, about);
  Json header{{"a@1,1", array}, {"__metadata__", {{"format", "pt"}}}};
  if (!about.is_null())
    header["__metadata__"]["a@1,1"] = about.is_string() ? about.get<std::string>() : about.dump();
  const std::string text = header.dump();
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text + std::string(16, 'x');
}

std::vector<PieceInFile> parse(const std::string& file) {
  return parse_piece_header(bytes_of(file), file.size(), "a.safetensors");
}

TEST(PieceFile, BelievesNoHeader) {
  const std::vector<PieceInFile> good = parse(changed_header([](Json&, Json&) {}));
  ASSERT_EQ(good.size(), 1u);
  EXPECT_EQ(good[0].piece.where, (Rectangle{.row = 1, .column = 1, .rows = 2, .columns = 2}));
  EXPECT_EQ(good[0].checksum, 0x0123456789abcdefu);

  struct HeaderFault {
    std::string message;
    std::function<void(Json&, Json&)> plant;
  };
  const std::vector<HeaderFault> faults{
      {"do not say which tensor", [](Json&, Json& about) { about = nullptr; }},
      {"\"a@1,1\"", [](Json&, Json& about) { about = "no JSON"; }},
      {"lacks tensor", [](Json&, Json& about) { about = Json::array(); }},
      {"lacks tensor", [](Json&, Json& about) { about.erase("tensor"); }},
      {"lacks tensor", [](Json&, Json& about) { about["tensor"] = 1; }},
      {"lacks tensor", [](Json&, Json& about) { about.erase("shape"); }},
      {"lacks tensor", [](Json&, Json& about) { about.erase("offset"); }},
      {"lacks tensor", [](Json&, Json& about) { about["xxh3"] = 1; }},
      {"not one of F64, F32, BF16, F16", [](Json& array, Json&) { array["dtype"] = "I32"; }},
      {"not one of F64, F32, BF16, F16", [](Json& array, Json&) { array["dtype"] = "U32"; }},
      {"not a list of at most 5", [](Json&, Json& about) { about["shape"] = "4"; }},
      {"not a list of at most 5", [](Json&, Json& about) { about["shape"] = {1, 1, 1, 1, 4, 3}; }},
      {"an extent that is not", [](Json&, Json& about) { about["shape"] = {0, 3}; }},
      {"an extent that is not", [](Json&, Json& about) { about["shape"] = {-4, 3}; }},
      {"an extent that is not", [](Json&, Json& about) { about["shape"] = {4.5, 3}; }},
      {"an extent that is not",
       [](Json&, Json& about) { about["shape"] = {uint64_t{1} << 41, 3}; }},
      {"too large",
       [](Json&, Json& about) { about["shape"] = {uint64_t{1} << 40, uint64_t{1} << 40}; }},
      {"not a pair of whole numbers", [](Json&, Json& about) { about["offset"] = {1}; }},
      {"not a pair of whole numbers", [](Json&, Json& about) { about["offset"] = {-1, 0}; }},
      {"not a pair of whole numbers",
       [](Json&, Json& about) { about["offset"] = {~uint64_t{0}, 0}; }},
      {"does not lie in", [](Json&, Json& about) { about["offset"] = {3, 1}; }},
      {"does not lie in", [](Json&, Json& about) { about["offset"] = {1, 2}; }},
      {"does not lie in",
       [](Json& array, Json& about) {
         array["shape"] = {4};
         about["offset"] = {0, 0};
       }},
      {"does not lie in",
       [](Json& array, Json& about) {
         array["shape"] = {2, 2, 1};
         about["shape"] = {2, 4};
         about["offset"] = {0, 0};
       }},
      {"xxh3 is not a checksum", [](Json&, Json& about) { about["xxh3"] = "0123"; }},
  };
  for (const HeaderFault& fault : faults) {
    const std::string file = changed_header(fault.plant);
    const std::string message = expect_error(ErrorKind::Data, fault.message, [&] { parse(file); });
    EXPECT_TRUE(message.starts_with("a.safetensors")) << message;
  }
}

TEST(PieceFile, HeaderIsThatOfTheManifest) {
  const TemporaryDirectory folder;
  PieceFileWriter writer(folder / "a.safetensors",
                         {{"a", DType::f32, {2}, {.rows = 2, .columns = 1}}});
  writer.write(bytes_of("12345678"));
  const CheckpointFile entry = writer.finish();
  const PositionedFile file(folder / "a.safetensors");
  EXPECT_EQ(read_piece_header(file, entry).size(), 1u);
  CheckpointFile other = entry;
  other.checksum ^= 1;
  expect_error(ErrorKind::Data, "a.safetensors is damaged: its header",
               [&] { read_piece_header(file, other); });
  other = entry;
  ++other.bytes;
  expect_error(ErrorKind::Data, "when it was written it had",
               [&] { read_piece_header(file, other); });
  AtomicFile tiny(folder / "tiny.safetensors");
  tiny.write(std::string_view("123"));
  tiny.commit();
  expect_error(ErrorKind::Data, "tiny.safetensors", [&] {
    read_piece_header(PositionedFile(folder / "tiny.safetensors"),
                      {.name = "tiny.safetensors", .bytes = 3});
  });
}

}  // namespace
}  // namespace bev
