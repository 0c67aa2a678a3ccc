#include <gtest/gtest.h>

#include "data/token_file_writer.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "unit/data/token_files.h"

namespace bev {
namespace {

using test::expect_error;
using test::RawIndex;
using test::read_all;
using test::Sequence;

constexpr std::array kTypes{TokenType::u8,  TokenType::i8,  TokenType::i16, TokenType::i32,
                            TokenType::i64, TokenType::f64, TokenType::f32, TokenType::u16};

TokenIndex parse(std::string_view idx, size_t bin_bytes) {
  return {std::as_bytes(std::span(idx.data(), idx.size())), bin_bytes, "a.idx"};
}

void expect_refused(const RawIndex& raw, const std::string& why, size_t bin_bytes = 10) {
  const std::string bytes = raw.bytes();
  const std::string message = expect_error(ErrorKind::Data, why, [&] { parse(bytes, bin_bytes); });
  EXPECT_NE(message.find("a.idx"), std::string::npos) << message;
}

TEST(TokenFile, WritesAndReadsEveryType) {
  const test::TemporaryDirectory dir;
  for (const TokenType type : kTypes) {
    SCOPED_TRACE(name_of(type));
    const std::filesystem::path prefix = dir / std::string(name_of(type));
    const std::vector<Sequence> sequences{{1, 2, 3}, {}, {127}, {0, 100}};
    test::write_tokens(prefix, sequences, type);
    const TokenFile file(prefix);
    EXPECT_EQ(file.index().type(), type);
    EXPECT_EQ(file.index().sequences(), 4);
    EXPECT_EQ(file.index().documents(), 4);
    EXPECT_EQ(file.index().tokens(), 6);
    EXPECT_TRUE(file.index().is_contiguous());
    EXPECT_FALSE(file.index().has_modes());
    EXPECT_EQ(read_all(file), (Sequence{1, 2, 3, 127, 0, 100}));
    EXPECT_EQ(file.largest_id(), 127);
    EXPECT_EQ(std::filesystem::file_size(bin_path(prefix)), 6 * size_of(type));
    // Any part of the stream, across sequences.
    Sequence part(3);
    file.read(2, part, 128);
    EXPECT_EQ(part, (Sequence{3, 127, 0}));
    file.read(6, std::span<int32_t>(), 128);  // nothing, at the end
  }
}

// Longer than the buffer of one read, from odd places, contiguous or not.
TEST(TokenFile, InPiecesAsMapped) {
  const test::TemporaryDirectory dir;
  std::vector<Sequence> sequences;
  for (const size_t length : {9000u, 0u, 3u, 20000u, 17u}) {
    Sequence sequence(length);
    for (size_t i = 0; i < length; ++i) sequence[i] = static_cast<int32_t>(i * 7 % 127);
    sequences.push_back(sequence);
  }
  for (const TokenType type : kTypes) {
    SCOPED_TRACE(name_of(type));
    const std::filesystem::path prefix = dir / std::string(name_of(type));
    test::write_tokens(prefix, sequences, type);
    const TokenFile mapped(prefix), pieces(prefix, TokenAccess::Pieces);
    EXPECT_EQ(read_all(pieces), read_all(mapped));
    EXPECT_EQ(pieces.largest_id(), 126);
    for (const int64_t begin : {1, 8999, 9001, 12345}) {
      Sequence a(16000), b(16000);
      mapped.read(begin, a, 127);
      pieces.read(begin, b, 127);
      EXPECT_EQ(a, b);
    }
    // The bad id is named wherever it lies.
    Sequence all(29020);
    const std::string message = expect_error(ErrorKind::Data, "token 18 of sequence 0 is 126",
                                             [&] { pieces.read(0, all, 126); });
    EXPECT_EQ(message, expect_error(ErrorKind::Data, "is 126", [&] { mapped.read(0, all, 126); }));
  }
}

TEST(TokenFile, LayoutIsTheFormats) {
  const test::TemporaryDirectory dir;
  test::write_tokens(dir / "a", {{1, 2, 3}, {4, 500}});
  const RawIndex expected;
  EXPECT_EQ(read_text(dir / "a.idx"), expected.bytes());
  EXPECT_EQ(read_text(dir / "a.bin"), std::string("\1\0\2\0\3\0\4\0\364\1", 10));
}

TEST(TokenFile, SequencesAndPlacesOfTheStream) {
  const test::TemporaryDirectory dir;
  test::write_tokens(dir / "a", {{}, {1, 2}, {}, {}, {3}, {}});
  const TokenFile file(dir / "a");
  const std::vector<int64_t> begins{0, 0, 2, 2, 2, 3, 3};
  for (size_t i = 0; i < begins.size(); ++i)
    EXPECT_EQ(file.stream_begin(static_cast<int64_t>(i)), begins[i]) << i;
  EXPECT_EQ(file.sequence_at(0), 1);
  EXPECT_EQ(file.sequence_at(1), 1);
  EXPECT_EQ(file.sequence_at(2), 4);
}

TEST(TokenFile, DocumentsMayHaveManySequencesOrNone) {
  const test::TemporaryDirectory dir;
  TokenFileWriter writer(dir / "a", TokenType::i32);
  writer.end_document();
  writer.add_sequence(Sequence{70000});
  writer.add_sequence(Sequence{1, 2});
  writer.end_document();
  writer.end_document();
  EXPECT_EQ(writer.documents(), 3);
  EXPECT_EQ(writer.sequences(), 2);
  EXPECT_EQ(writer.tokens(), 3);
  writer.commit();
  const TokenFile file(dir / "a");
  EXPECT_EQ(file.index().documents(), 3);
  const std::vector<int64_t> begins{0, 0, 2, 2};
  for (size_t i = 0; i < begins.size(); ++i)
    EXPECT_EQ(file.index().document_begin(static_cast<int64_t>(i)), begins[i]) << i;
  EXPECT_EQ(read_all(file), (Sequence{70000, 1, 2}));
}

TEST(TokenFile, WithoutAnyToken) {
  const test::TemporaryDirectory dir;
  test::write_tokens(dir / "none", {});
  test::write_tokens(dir / "blank", {{}, {}});
  for (const char* name : {"none", "blank"}) {
    const TokenFile file(dir / name);
    EXPECT_EQ(file.index().tokens(), 0);
    EXPECT_EQ(file.largest_id(), -1);
    EXPECT_EQ(read_all(file), Sequence{});
  }
}

TEST(TokenFile, NameMayHaveAnEnding) {
  const test::TemporaryDirectory dir;
  test::write_tokens(dir / "a.v2", {{1}});
  for (const char* name : {"a.v2", "a.v2.bin", "a.v2.idx"})
    EXPECT_EQ(TokenFile(dir / name).prefix(), dir / "a.v2") << name;
}

// Merged files keep the offsets of their parts; nothing says that sequences lie in order.
TEST(TokenFile, SequencesAnywhereInTheFile) {
  const test::TemporaryDirectory dir;
  RawIndex raw;
  raw.lengths = {2, 3, 0, 1};
  raw.offsets = {6, 0, 10, 8};
  raw.documents = {0, 4};
  raw.sequences = 4;
  raw.entries = 2;
  test::write_bytes(dir / "a.idx", raw.bytes());
  test::write_bytes(dir / "a.bin", std::string("\1\0\2\0\3\0\4\0\5\0", 10));
  const TokenFile file(dir / "a");
  EXPECT_FALSE(file.index().is_contiguous());
  EXPECT_EQ(read_all(file), (Sequence{4, 5, 1, 2, 3, 5}));
  for (int64_t begin = 0; begin <= 6; ++begin) {
    for (int64_t end = begin; end <= 6; ++end) {
      Sequence part(static_cast<size_t>(end - begin));
      file.read(begin, part, 10);
      const Sequence all{4, 5, 1, 2, 3, 5};
      EXPECT_EQ(part, Sequence(all.begin() + begin, all.begin() + end)) << begin << " " << end;
    }
  }
}

TEST(TokenFile, ModesAreAccepted) {
  RawIndex raw;
  raw.modes = std::string("\0\1", 2);
  const std::string bytes = raw.bytes();
  EXPECT_TRUE(parse(bytes, 10).has_modes());
  EXPECT_EQ(parse(bytes, 10).tokens(), 5);
}

// Some writers never close a document.
TEST(TokenFile, OneEntryOfDocumentsIsAccepted) {
  RawIndex raw;
  raw.documents = {0};
  raw.entries = 1;
  const std::string bytes = raw.bytes();
  EXPECT_EQ(parse(bytes, 10).documents(), 0);
  EXPECT_EQ(parse(bytes, 10).sequences(), 2);
}

TEST(TokenFile, IdsBeyondTheVocabularyAreNamed) {
  const test::TemporaryDirectory dir;
  test::write_tokens(dir / "a", {{1, 2, 3}, {}, {4, 500, 6}});
  const TokenFile file(dir / "a");
  Sequence ids(6);
  file.read(0, ids, 501);
  const std::string message = expect_error(ErrorKind::Data, "token 1 of sequence 2 is 500",
                                           [&] { file.read(0, ids, 500); });
  EXPECT_NE(message.find("500 ids (0 to 499)"), std::string::npos) << message;
  EXPECT_NE(message.find("a.bin"), std::string::npos) << message;
  expect_error(ErrorKind::Data, "token 0 of sequence 0 is 1", [&] { file.read(0, ids, 1); });
  expect_error(ErrorKind::Internal, "tokens 1 to 7 of 6", [&] { file.read(1, ids, 501); });
  expect_error(ErrorKind::Internal, "wanted", [&] { file.read(-1, ids, 501); });
}

TEST(TokenFile, WhatIsNoIdIsNamed) {
  const test::TemporaryDirectory dir;
  RawIndex raw;
  raw.lengths = {2};
  raw.offsets = {0};
  raw.documents = {0, 1};
  raw.sequences = 1;
  raw.entries = 2;
  const auto expect_bad = [&](auto bad, const std::string& shown) {
    std::string bin;
    test::put(bin, decltype(bad){1});
    test::put(bin, bad);
    test::write_bytes(dir / "a.bin", bin);
    test::write_bytes(dir / "a.idx", raw.bytes());
    const TokenFile file(dir / "a");
    expect_error(ErrorKind::Data, "token 1 of sequence 0 is " + shown,
                 [&] { read_all(file, 1000); });
    expect_error(ErrorKind::Data, "is " + shown + ", not a token id; the file is damaged",
                 [&] { (void)file.largest_id(); });
  };
  raw.type = static_cast<uint8_t>(TokenType::i8);
  expect_bad(int8_t{-1}, "-1");
  raw.type = static_cast<uint8_t>(TokenType::i32);
  expect_bad(INT32_MIN, "-2147483648");
  raw.type = static_cast<uint8_t>(TokenType::i64);
  expect_bad(int64_t{1} << 32, "4294967296");
  raw.type = static_cast<uint8_t>(TokenType::f32);
  expect_bad(0.5f, "0.5");
  expect_bad(-1.0f, "-1");
  raw.type = static_cast<uint8_t>(TokenType::f64);
  expect_bad(1e300, "1e+300");
  expect_bad(std::numeric_limits<double>::quiet_NaN(), "nan");
}

TEST(TokenFile, HostileHeaders) {
  parse(RawIndex{}.bytes(), 10);
  expect_refused({.magic = std::string("MMIDIDX\0\1", 9)}, "MMIDIDX");
  for (const uint64_t version : {uint64_t{0}, uint64_t{2}, UINT64_MAX})
    expect_refused({.version = version}, "version");
  for (const uint8_t type : {uint8_t{0}, uint8_t{9}, uint8_t{255}})
    expect_refused({.type = type}, "type");
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{3}, UINT64_MAX,
                               UINT64_MAX / 12 + 1, uint64_t{1} << 62, uint64_t{1} << 63}) {
    expect_refused({.sequences = count}, "document entries");
    if (count != 3) expect_refused({.entries = count}, "document entries");
  }
  // Both wrong, so that their sum would be right with wrapped arithmetic.
  expect_refused({.sequences = UINT64_MAX / 12 + 2, .entries = 3}, "document entries");
  expect_refused({.lengths = {}, .offsets = {}, .documents = {}, .sequences = 0, .entries = 0},
                 "no document entries");
  expect_refused({.modes = "x"}, "document entries");
}

TEST(TokenFile, HostileSequences) {
  expect_refused({.lengths = {-1, 2}}, "sequence 0 has the length -1");
  expect_refused({.lengths = {3, INT32_MIN}}, "sequence 1 has the length");
  expect_refused({.lengths = {3, 3}}, "sequence 1 has 3 ids");
  expect_refused({.lengths = {INT32_MAX, 2}}, "sequence 0 has 2147483647 ids");
  expect_refused({.offsets = {0, -2}}, "begins at byte -2");
  expect_refused({.offsets = {0, 5}}, "begins at byte 5");
  expect_refused({.offsets = {0, 8}}, "the .bin file has 10 bytes");
  expect_refused({.offsets = {0, 12}}, "from byte 12 on");
  expect_refused({.offsets = {INT64_MIN, 6}}, "sequence 0 begins");
  expect_refused({.offsets = {0, INT64_MAX - 1}}, "sequence 1 has 2 ids");
  for (const size_t bin : {size_t{0}, size_t{5}, size_t{9}})
    expect_refused({}, "cut off, or they do not belong together", bin);
  expect_refused({.type = 4}, "sequence 0 has 3 ids of 4 bytes");
}

TEST(TokenFile, HostileDocuments) {
  expect_refused({.documents = {1, 1, 2}}, "document entry 0 is 1");
  expect_refused({.documents = {0, 2, 1}}, "document entry 2 is 1");
  expect_refused({.documents = {0, 3, 3}}, "document entry 1 is 3");
  expect_refused({.documents = {0, -1, 2}}, "document entry 1 is -1");
  expect_refused({.documents = {0, 1, 1}}, "ends with sequence 1, but there are 2");
}

TEST(TokenFile, CutOffAnywhere) {
  const std::string whole = RawIndex{}.bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    // An exact copy, so that a sanitizer sees a read beyond the end.
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    SCOPED_TRACE(size);
    expect_error(ErrorKind::Data, "a.idx",
                 [&] { parse(std::string_view(part.data(), part.size()), 10); });
  }
  for (size_t more = 1; more < 20; ++more) {
    if (more == 2) continue;  // these are modes
    expect_error(ErrorKind::Data, "a.idx", [&] { parse(whole + std::string(more, '\0'), 10); });
  }
}

TEST(TokenFile, MissingAndStrangeFiles) {
  const test::TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "a.idx", [&] { TokenFile(dir / "a"); });
  test::write_bytes(dir / "a.idx", RawIndex{}.bytes());
  expect_error(ErrorKind::Data, "a.bin", [&] { TokenFile(dir / "a"); });
  test::write_bytes(dir / "a.bin", "");
  expect_error(ErrorKind::Data, "the .bin file has 0 bytes", [&] { TokenFile(dir / "a"); });
  test::write_bytes(dir / "a.bin", "0123456789");
  TokenFile(dir / "a");
  test::write_bytes(dir / "a.idx", "");
  expect_error(ErrorKind::Data, "0 bytes are not an index", [&] { TokenFile(dir / "a"); });
  std::filesystem::create_directory(dir / "b.idx");
  expect_error(ErrorKind::Data, "not a regular file", [&] { TokenFile(dir / "b"); });
}

TEST(TokenFileWriter, NothingAppearsWithoutCommit) {
  const test::TemporaryDirectory dir;
  {
    TokenFileWriter writer(dir / "a", TokenType::u16);
    writer.add_sequence(Sequence(1 << 20, 5));  // more than is kept back
    writer.end_document();
    EXPECT_FALSE(std::filesystem::exists(dir / "a.bin"));
    EXPECT_FALSE(std::filesystem::exists(dir / "a.idx"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  test::write_tokens(dir / "a", {{1}});
  {
    TokenFileWriter again(dir / "a", TokenType::i32);
  }
  EXPECT_EQ(read_all(TokenFile(dir / "a")), Sequence{1});
}

TEST(TokenFileWriter, CopyOfAFileIsTheSameBytes) {
  const test::TemporaryDirectory dir;
  TokenFileWriter first(dir / "a", TokenType::u16);
  for (int32_t i = 0; i < 50; ++i) {
    first.add_sequence(Sequence(static_cast<size_t>(i * i * 13 % 7), i));
    if (i % 3 != 0) first.end_document();
    if (i % 5 == 0) first.end_document();
  }
  first.end_document();
  first.commit();
  const TokenFile file(dir / "a");
  TokenFileWriter second(dir / "b", file.index().type());
  for (int64_t document = 0; document < file.index().documents(); ++document) {
    for (int64_t i = file.index().document_begin(document);
         i < file.index().document_begin(document + 1); ++i) {
      Sequence ids(static_cast<size_t>(file.index().length(i)));
      file.read(file.stream_begin(i), ids, 50);
      second.add_sequence(ids);
    }
    second.end_document();
  }
  second.commit();
  EXPECT_EQ(read_text(dir / "a.idx"), read_text(dir / "b.idx"));
  EXPECT_EQ(read_text(dir / "a.bin"), read_text(dir / "b.bin"));
}

TEST(TokenFileWriter, RefusesWhatTheTypeCannotHold) {
  const test::TemporaryDirectory dir;
  const auto write = [&](TokenType type, int32_t id) {
    test::write_tokens(dir / "a", {{id}}, type);
  };
  expect_error(ErrorKind::Data, "id 256 does not fit uint8", [&] { write(TokenType::u8, 256); });
  expect_error(ErrorKind::Data, "id 128 does not fit int8", [&] { write(TokenType::i8, 128); });
  expect_error(ErrorKind::Data, "id 65536 does not fit", [&] { write(TokenType::u16, 65536); });
  expect_error(ErrorKind::Data, "id -1 does not fit uint16", [&] { write(TokenType::u16, -1); });
  expect_error(ErrorKind::Data, "id 16777217 does not fit float32",
               [&] { write(TokenType::f32, 16777217); });
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  write(TokenType::u16, 65535);
  EXPECT_EQ(read_all(TokenFile(dir / "a")), Sequence{65535});
}

TEST(TokenFileWriter, FolderMustExist) {
  const test::TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "a.bin", [&] { test::write_tokens(dir / "no/a", {{1}}); });
  test::write_bytes(dir / "file", "x");
  expect_error(ErrorKind::Data, "file/a.bin", [&] { test::write_tokens(dir / "file/a", {{1}}); });
}

// Said before anything is written, so that not one file of the two appears.
TEST(TokenFileWriter, FolderInPlaceOfAFile) {
  const test::TemporaryDirectory dir;
  for (const char* name : {"a.idx", "b.bin"}) {
    std::filesystem::create_directory(dir / name);
    expect_error(ErrorKind::Data, std::string(name) + ": it is a folder",
                 [&] { test::write_tokens(dir / std::string(name).substr(0, 1), {{1}}); });
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    EXPECT_TRUE(entry.is_directory()) << entry.path();
}

TEST(TokenType, ChosenByTheVocabulary) {
  EXPECT_EQ(token_type_for(257), TokenType::u16);
  EXPECT_EQ(token_type_for(65499), TokenType::u16);
  EXPECT_EQ(token_type_for(65500), TokenType::i32);
}

}  // namespace
}  // namespace bev
