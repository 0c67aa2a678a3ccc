#include "data/token_file_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace bev {

namespace {

constexpr size_t kBlock = size_t{1} << 20;  // bytes

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

void EncodedDocuments::cut_to(const Sizes& earlier) {
  ids.resize(earlier.ids);
  lengths.resize(earlier.lengths);
  sequences.resize(earlier.sequences);
}

void EncodedDocuments::add_sequence(std::span<const int32_t> tokens, TokenType type) {
  BEV_CHECK(tokens.size() <= std::numeric_limits<int32_t>::max(), Data,
            "a sequence of {} tokens is longer than the format allows (2^31 - 1)", tokens.size());
  with_type(type, [&](auto stored_type) {
    using T = decltype(stored_type);
    const size_t begin = ids.size();
    ids.resize(begin + tokens.size() * sizeof(T));
    std::byte* to = ids.data() + begin;
    bool good = true;
    for (const int32_t id : tokens) {
      const T stored = static_cast<T>(id);
      good = good && static_cast<int64_t>(stored) == id;
      std::memcpy(to, &stored, sizeof(T));
      to += sizeof(T);
    }
    if (good) return;
    for (const int32_t id : tokens)
      BEV_CHECK(static_cast<int64_t>(static_cast<T>(id)) == id, Data, "id {} does not fit {}", id,
                name_of(type));
  });
  lengths.push_back(static_cast<int32_t>(tokens.size()));
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& prefix, TokenType type)
    : prefix_(prefix),
      type_(type),
      bin_(bin_path(prefix)),
      idx_(idx_path(prefix)),
      document_ends_(prefix.parent_path()) {
  idx_.write(std::string(kTokenHeaderBytes, '\0'));
}

void TokenFileWriter::add_sequence(std::span<const int32_t> ids) {
  pending_.add_sequence(ids, type_);
  ++open_;
  if (pending_.ids.size() >= kBlock || pending_.lengths.size() * sizeof(int32_t) >= kBlock) flush();
}

void TokenFileWriter::end_document() {
  pending_.sequences.push_back(static_cast<int32_t>(open_));
  open_ = 0;
  if (pending_.sequences.size() * sizeof(int64_t) >= kBlock) flush();
}

void TokenFileWriter::flush() {
  add_ids(pending_.ids);
  add_lengths(pending_.lengths);
  add_documents(pending_.sequences);
  pending_.clear();
}

void TokenFileWriter::add_ids(std::span<const std::byte> ids) {
  bin_.write(ids);
  tokens_ += static_cast<int64_t>(ids.size() / size_of(type_));
}

void TokenFileWriter::add_lengths(std::span<const int32_t> lengths) {
  idx_.write(std::as_bytes(lengths));
  sequences_ += static_cast<int64_t>(lengths.size());
}

void TokenFileWriter::add_documents(std::span<const int32_t> sequences) {
  std::vector<int64_t> ends;
  ends.reserve(sequences.size());
  for (const int32_t count : sequences) ends.push_back(ended_ += count);
  document_ends_.write(bytes_of(ends));
  documents_ += static_cast<int64_t>(ends.size());
}

void TokenFileWriter::add(const EncodedDocuments& documents) {
  flush();
  add_ids(documents.ids);
  add_lengths(documents.lengths);
  add_documents(documents.sequences);
}

void TokenFileWriter::add(const TokenFile& file) {
  const TokenIndex& index = file.index();
  BEV_CHECK(index.type() == type_, Data, "{}: its ids are {}, those before it {}",
            file.prefix().string(), name_of(index.type()), name_of(type_));
  BEV_CHECK(!index.has_modes(), Data, "{}: files with pictures cannot be merged",
            file.prefix().string());
  BEV_CHECK(index.documents() > 0 || index.sequences() == 0, Data,
            "{}: its sequences belong to no document", file.prefix().string());
  flush();
  for (int64_t i = 0; i < index.sequences(); ++i) {
    const std::span<const std::byte> ids = file.sequence_bytes(i);
    pending_.ids.insert(pending_.ids.end(), ids.begin(), ids.end());
    pending_.lengths.push_back(static_cast<int32_t>(index.length(i)));
    if (pending_.ids.size() >= kBlock) flush();
  }
  for (int64_t i = 0; i < index.documents(); ++i)
    pending_.sequences.push_back(
        static_cast<int32_t>(index.document_begin(i + 1) - index.document_begin(i)));
  flush();
}

void TokenFileWriter::write_index() {
  std::vector<int32_t> lengths;
  std::vector<int64_t> offsets;
  int64_t offset = 0;
  for (int64_t done = 0; done < sequences_;) {
    const auto count =
        static_cast<size_t>(std::min<int64_t>(sequences_ - done, kBlock / sizeof(int32_t)));
    lengths.resize(count);
    offsets.clear();
    idx_.read_at(kTokenHeaderBytes + static_cast<size_t>(done) * sizeof(int32_t),
                 std::as_writable_bytes(std::span(lengths)));
    for (const int32_t length : lengths) {
      offsets.push_back(offset);
      offset += length * static_cast<int64_t>(size_of(type_));
    }
    idx_.write(bytes_of(offsets));
    done += static_cast<int64_t>(count);
  }
  idx_.write(std::as_bytes(std::span<const int64_t>({int64_t{0}})));
  std::vector<std::byte> block;
  for (size_t done = 0; done < document_ends_.size(); done += block.size()) {
    block.resize(std::min(kBlock, document_ends_.size() - done));
    document_ends_.read_at(done, block);
    idx_.write(block);
  }
  std::array<std::byte, kTokenHeaderBytes> header;
  const auto put = [&](size_t at, const auto& value) {
    std::memcpy(header.data() + at, &value, sizeof(value));
  };
  put(0, kTokenMagic);
  put(9, kTokenVersion);
  put(17, type_);
  put(18, sequences_);
  put(26, documents_ + 1);
  idx_.write_at(0, header);
}

void TokenFileWriter::commit() {
  flush();
  BEV_CHECK(ended_ == sequences_, Internal, "{} sequences, of which {} belong to documents",
            sequences_, ended_);
  write_index();
  // An old index must never meet the new tokens: without its index the pair is no pair.
  std::error_code ignored;
  std::filesystem::remove(idx_path(prefix_), ignored);
  bin_.commit();
  idx_.commit();
}

}  // namespace bev
