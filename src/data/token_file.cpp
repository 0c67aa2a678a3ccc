#include "data/token_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace bev {

namespace {

// The size of a vocabulary that is not known: every id fits.
constexpr int64_t kAnyVocab = std::numeric_limits<int32_t>::max();

template <class T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The i-th of packed numbers; they are not aligned in the file.
template <class T>
int64_t entry(std::span<const std::byte> array, int64_t i) {
  return static_cast<int64_t>(load<T>(array, static_cast<size_t>(i) * sizeof(T)));
}

template <class T>
bool is_id(T value, int64_t vocab) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto number = static_cast<double>(value);
    return number >= 0 && number < static_cast<double>(vocab) && std::trunc(number) == number;
  } else {
    return std::cmp_greater_equal(value, 0) && std::cmp_less(value, vocab);
  }
}

// Copies ids; false when one of them is not in [0, vocab). The loops have no branch and no early
// end, so that the compiler makes vector code of them.
template <class T>
bool convert_ids(std::span<const std::byte> from, std::span<int32_t> out, int64_t vocab) {
  if constexpr (std::is_integral_v<T> && sizeof(T) <= 4) {
    const auto limit =
        static_cast<int32_t>(std::min<int64_t>(vocab, std::numeric_limits<int32_t>::max()));
    int32_t bad = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const auto id = static_cast<int32_t>(load<T>(from, i * sizeof(T)));
      bad |= (id >= limit ? -1 : 0) | id;  // the sign bit: too large, or negative
      out[i] = id;
    }
    return bad >= 0;
  } else {
    bool good = true;
    for (size_t i = 0; i < out.size(); ++i) {
      const T id = load<T>(from, i * sizeof(T));
      const bool fits = is_id(id, vocab);
      good = good && fits;
      out[i] = fits ? static_cast<int32_t>(id) : 0;
    }
    return good;
  }
}

std::filesystem::path without_ending(const std::filesystem::path& prefix) {
  const std::filesystem::path ending = prefix.extension();
  if (ending != ".bin" && ending != ".idx") return prefix;
  std::filesystem::path stem = prefix;
  return stem.replace_extension();
}

}  // namespace

TokenIndex::TokenIndex(std::span<const std::byte> idx, size_t bin_bytes, std::string_view source) {
  BEV_CHECK(idx.size() >= kTokenHeaderBytes, Data,
            "{}: {} bytes are not an index of tokens, whose header alone has {}", source,
            idx.size(), kTokenHeaderBytes);
  BEV_CHECK(std::memcmp(idx.data(), kTokenMagic.data(), kTokenMagic.size()) == 0, Data,
            "{}: not an index of tokens: it does not begin with MMIDIDX", source);
  const auto version = load<uint64_t>(idx, 9);
  BEV_CHECK(version == kTokenVersion, Data, "{}: version {} of the index; only {} is known", source,
            version, kTokenVersion);
  const auto code = load<uint8_t>(idx, 17);
  BEV_CHECK(code >= 1 && code <= 8, Data, "{}: type {} of the ids; 1 to 8 are known", source, code);
  type_ = static_cast<TokenType>(code);
  const auto sequences = load<uint64_t>(idx, 18), entries = load<uint64_t>(idx, 26);
  // Bounded by the file first, so that nothing below can overflow.
  const size_t body = idx.size() - kTokenHeaderBytes;
  BEV_CHECK(sequences <= body / 12 && entries <= body / 8, Data,
            "{}: {} sequences and {} document entries do not fit a file of {} bytes; it is cut "
            "off or damaged",
            source, sequences, entries, idx.size());
  const size_t plain = 12 * sequences + 8 * entries;
  has_modes_ = sequences > 0 && body == plain + sequences;
  BEV_CHECK(body == plain || has_modes_, Data,
            "{}: {} sequences and {} document entries need {} bytes, but the file has {}; it is "
            "cut off or damaged",
            source, sequences, entries, kTokenHeaderBytes + plain, idx.size());
  BEV_CHECK(entries >= 1, Data, "{}: the index has no document entries", source);
  sequences_ = static_cast<int64_t>(sequences);
  entries_ = static_cast<int64_t>(entries);
  lengths_ = idx.subspan(kTokenHeaderBytes, 4 * sequences);
  offsets_ = idx.subspan(kTokenHeaderBytes + 4 * sequences, 8 * sequences);
  document_begins_ = idx.subspan(kTokenHeaderBytes + 12 * sequences, 8 * entries);
  check_sequences(bin_bytes, source);
  check_documents(source);
}

void TokenIndex::check_sequences(size_t bin_bytes, std::string_view source) {
  const auto width = static_cast<int64_t>(size_of(type_));
  const auto limit = static_cast<int64_t>(bin_bytes);
  for (int64_t i = 0; i < sequences_; ++i) {
    const int64_t count = length(i), offset = byte_offset(i);
    BEV_CHECK(count >= 0, Data, "{}: sequence {} has the length {}", source, i, count);
    BEV_CHECK(offset >= 0 && offset % width == 0, Data,
              "{}: sequence {} begins at byte {}, which is not the place of an id of {} bytes",
              source, i, offset, width);
    BEV_CHECK(offset <= limit && count * width <= limit - offset, Data,
              "{}: sequence {} has {} ids of {} bytes from byte {} on, but the .bin file has {} "
              "bytes; one of the two files is cut off, or they do not belong together",
              source, i, count, width, offset, limit);
    contiguous_ = contiguous_ && offset == tokens_ * width;
    BEV_CHECK(!__builtin_add_overflow(tokens_, count, &tokens_), Data,
              "{}: the sequences have more tokens than can be counted", source);
  }
}

void TokenIndex::check_documents(std::string_view source) const {
  int64_t before = 0;
  for (int64_t i = 0; i < entries_; ++i) {
    const int64_t begin = document_begin(i);
    BEV_CHECK(begin >= before && begin <= sequences_ && (i > 0 || begin == 0), Data,
              "{}: document entry {} is {}; entries rise from 0 to the {} sequences", source, i,
              begin, sequences_);
    before = begin;
  }
  // Some writers never close a document; their files have the one entry 0.
  BEV_CHECK(before == sequences_ || entries_ == 1, Data,
            "{}: the last document ends with sequence {}, but there are {}", source, before,
            sequences_);
}

int64_t TokenIndex::length(int64_t sequence) const { return entry<int32_t>(lengths_, sequence); }

int64_t TokenIndex::byte_offset(int64_t sequence) const {
  return entry<int64_t>(offsets_, sequence);
}

int64_t TokenIndex::document_begin(int64_t document) const {
  return entry<int64_t>(document_begins_, document);
}

TokenFile::TokenFile(const std::filesystem::path& prefix, TokenAccess access)
    : prefix_(without_ending(prefix)),
      idx_(idx_path(prefix_)),
      mapped_(access == TokenAccess::Mapped ? std::make_optional<MappedFile>(bin_path(prefix_))
                                            : std::nullopt),
      pieces_(mapped_ ? nullptr : std::make_unique<const PositionedFile>(bin_path(prefix_))),
      index_(idx_.bytes(), bin_bytes(), idx_.path().string()) {
  begins_.reserve(static_cast<size_t>(index_.sequences()) + 1);
  int64_t place = 0;
  for (int64_t i = 0; i < index_.sequences(); ++i) {
    begins_.push_back(place);
    place += index_.length(i);
  }
  begins_.push_back(place);
}

int64_t TokenFile::stream_begin(int64_t sequence) const {
  return begins_[static_cast<size_t>(sequence)];
}

int64_t TokenFile::sequence_at(int64_t place) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), place);
  return after - begins_.begin() - 1;
}

void TokenFile::read(int64_t begin, std::span<int32_t> out, int64_t vocab) const {
  const auto count = static_cast<int64_t>(out.size());
  BEV_CHECK(begin >= 0 && count <= index_.tokens() - begin, Internal,
            "tokens {} to {} of {} are wanted", begin, begin + count, index_.tokens());
  const auto width = static_cast<int64_t>(size_of(index_.type()));
  if (index_.is_contiguous()) return read_bytes(begin * width, begin, out, vocab);
  int64_t sequence = sequence_at(begin);
  while (!out.empty()) {
    const int64_t inside = begin - stream_begin(sequence);
    const int64_t here =
        std::min(index_.length(sequence) - inside, static_cast<int64_t>(out.size()));
    const auto part = static_cast<size_t>(here);
    read_bytes(index_.byte_offset(sequence) + inside * width, begin, out.first(part), vocab);
    out = out.subspan(part);
    begin += here;
    ++sequence;
  }
}

void TokenFile::read_bytes(int64_t byte_offset, int64_t place, std::span<int32_t> out,
                           int64_t vocab) const {
  const size_t width = size_of(index_.type());
  auto offset = static_cast<size_t>(byte_offset);
  if (mapped_)
    return convert(mapped_->bytes().subspan(offset, out.size() * width), place, out, vocab);
  std::array<std::byte, 16384> buffer;
  while (!out.empty()) {
    const size_t count = std::min(out.size(), buffer.size() / width);
    const std::span<std::byte> piece(buffer.data(), count * width);
    pieces_->read(offset, piece);
    convert(piece, place, out.first(count), vocab);
    out = out.subspan(count);
    offset += piece.size();
    place += static_cast<int64_t>(count);
  }
}

void TokenFile::convert(std::span<const std::byte> from, int64_t place, std::span<int32_t> out,
                        int64_t vocab) const {
  with_type(index_.type(), [&](auto type) {
    using T = decltype(type);
    if (convert_ids<T>(from, out, vocab)) return;
    for (size_t i = 0; i < out.size(); ++i) {
      const T id = load<T>(from, i * sizeof(T));
      if (is_id(id, vocab)) continue;
      const int64_t at = place + static_cast<int64_t>(i);
      const int64_t sequence = sequence_at(at);
      const std::string why =
          vocab == kAnyVocab
              ? "not a token id; the file is damaged"
              : format(
                    "but the vocabulary has {} ids (0 to {}); the file was made with another "
                    "tokenizer, or it is damaged",
                    vocab, vocab - 1);
      throw Error(ErrorKind::Data,
                  format("{}: token {} of sequence {} is {}, {}", bin_path(prefix_).string(),
                         at - stream_begin(sequence), sequence, +id, why));
    }
  });
}

std::span<const std::byte> TokenFile::sequence_bytes(int64_t sequence) const {
  BEV_CHECK(mapped_, Internal, "{}: a sequence of a file that is not mapped", prefix_.string());
  return mapped_->bytes().subspan(
      static_cast<size_t>(index_.byte_offset(sequence)),
      static_cast<size_t>(index_.length(sequence)) * size_of(index_.type()));
}

int64_t TokenFile::largest_id() const {
  std::array<int32_t, 4096> block;
  int64_t largest = -1;
  for (int64_t place = 0; place < index_.tokens();) {
    const int64_t count = std::min<int64_t>(index_.tokens() - place, block.size());
    const std::span<int32_t> part(block.data(), static_cast<size_t>(count));
    read(place, part, kAnyVocab);
    largest = std::max<int64_t>(largest, *std::max_element(part.begin(), part.end()));
    place += count;
  }
  return largest;
}

size_t size_of(TokenType type) {
  return with_type(type, [](auto id) { return sizeof(id); });
}

std::string_view name_of(TokenType type) {
  constexpr std::array<std::string_view, 9> kNames{"",      "uint8",   "int8",    "int16", "int32",
                                                   "int64", "float64", "float32", "uint16"};
  return kNames[static_cast<size_t>(type)];
}

TokenType token_type_for(int64_t vocab) { return vocab < 65500 ? TokenType::u16 : TokenType::i32; }

std::filesystem::path bin_path(const std::filesystem::path& prefix) {
  return prefix.string() + ".bin";
}

std::filesystem::path idx_path(const std::filesystem::path& prefix) {
  return prefix.string() + ".idx";
}

}  // namespace bev
