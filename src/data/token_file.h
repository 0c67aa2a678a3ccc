// Megatron-LM's token files. PREFIX.bin holds the ids of all sequences without any header;
// PREFIX.idx, little endian, says where each sequence lies and which sequences form a document:
//
//   9 bytes magic, u64 version = 1, u8 type of an id, u64 sequences N, u64 document entries M,
//   i32 length[N], i64 byte offset[N], i64 first sequence of each document and last N [M],
//   and, in files with pictures, i8 mode[N]
//
// The reader believes nothing: every field is checked against the two files before it is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace bev {

// How a token file stores an id, and the names and fixed parts of its two files.

// The type of one id; the numbers are those of the format.
enum class TokenType : uint8_t { u8 = 1, i8, i16, i32, i64, f64, f32, u16 };
size_t size_of(TokenType type);
std::string_view name_of(TokenType type);

// Megatron's choice: 16 bits below 65,500 ids.
TokenType token_type_for(int64_t vocab);

// Calls f with a value of the C++ type of an id.
template <class F>
auto with_type(TokenType type, F f) {
  switch (type) {
    case TokenType::u8: return f(uint8_t{});
    case TokenType::i8: return f(int8_t{});
    case TokenType::i16: return f(int16_t{});
    case TokenType::i32: return f(int32_t{});
    case TokenType::i64: return f(int64_t{});
    case TokenType::f64: return f(double{});
    case TokenType::f32: return f(float{});
    case TokenType::u16: break;
  }
  return f(uint16_t{});
}

// The two files of a prefix.
std::filesystem::path bin_path(const std::filesystem::path& prefix);
std::filesystem::path idx_path(const std::filesystem::path& prefix);

// An .idx file begins with these, the type (one byte) and two numbers of eight.
constexpr std::array<unsigned char, 9> kTokenMagic{'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr uint64_t kTokenVersion = 1;
constexpr size_t kTokenHeaderBytes = 34;

// The content of an .idx file, checked. Views into the bytes it was parsed from.
class TokenIndex {
 public:
  // `bin_bytes`: the size of the .bin file. `source` names the .idx in errors, which are Data
  // errors.
  TokenIndex(std::span<const std::byte> idx, size_t bin_bytes, std::string_view source);

  TokenType type() const { return type_; }
  int64_t sequences() const { return sequences_; }
  int64_t documents() const { return entries_ - 1; }
  int64_t tokens() const { return tokens_; }
  bool has_modes() const { return has_modes_; }
  // Whether each sequence begins in the .bin where the one before it ends, from byte 0 on.
  bool is_contiguous() const { return contiguous_; }

  // REQUIRES: 0 <= sequence < sequences().
  int64_t length(int64_t sequence) const;
  int64_t byte_offset(int64_t sequence) const;
  // The first sequence of a document; of documents(): sequences(), in every complete file.
  int64_t document_begin(int64_t document) const;

 private:
  void check_sequences(size_t bin_bytes, std::string_view source);
  void check_documents(std::string_view source) const;

  std::span<const std::byte> lengths_, offsets_, document_begins_;
  TokenType type_{};
  int64_t sequences_ = 0, entries_ = 0, tokens_ = 0;
  bool has_modes_ = false, contiguous_ = true;
};

// How the .bin file is read. The .idx file is always mapped.
enum class TokenAccess : uint8_t { Mapped, Pieces };

// Both files. Tokens are addressed by their place in the stream of all sequences in the
// order of the index.
class TokenFile {
 public:
  // `prefix` without ending; one that ends in .bin or .idx is understood too.
  explicit TokenFile(const std::filesystem::path& prefix, TokenAccess access = TokenAccess::Mapped);

  const TokenIndex& index() const { return index_; }
  const std::filesystem::path& prefix() const { return prefix_; }

  // The place in the stream where a sequence begins; of sequences(): the end of the stream.
  int64_t stream_begin(int64_t sequence) const;

  // Copies the tokens [begin, begin + out.size()) of the stream. An id that is not a whole number
  // in [0, vocab) is a Data error that names sequence and offset. REQUIRES: the range lies in the
  // stream. Does not allocate unless it fails.
  void read(int64_t begin, std::span<int32_t> out, int64_t vocab) const;

  // A sequence as it is stored. REQUIRES: 0 <= sequence < sequences(), and the file is mapped.
  std::span<const std::byte> sequence_bytes(int64_t sequence) const;

  // The largest id of all. A Data error on a negative one or a fraction.
  int64_t largest_id() const;

  // The sequence that holds a place of the stream.
  int64_t sequence_at(int64_t place) const;

 private:
  void read_bytes(int64_t byte_offset, int64_t place, std::span<int32_t> out, int64_t vocab) const;
  void convert(std::span<const std::byte> from, int64_t place, std::span<int32_t> out,
               int64_t vocab) const;
  size_t bin_bytes() const { return mapped_ ? mapped_->bytes().size() : pieces_->size(); }

  std::filesystem::path prefix_;
  MappedFile idx_;
  // One of the two.
  std::optional<MappedFile> mapped_;
  std::unique_ptr<const PositionedFile> pieces_;
  TokenIndex index_;
  std::vector<int64_t> begins_;  // stream_begin of every sequence, and the end
};

}  // namespace bev
