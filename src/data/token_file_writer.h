// Writes the two files of token_file.h. They appear when commit() returns, the .idx last, or not at
// all. Memory does not grow with what is written.
#pragma once

#include <span>
#include <vector>

#include "base/file.h"
#include "data/token_file.h"

namespace bev {

// Documents ready to be written: the ids as they are stored, the length of each sequence in tokens,
// and how many sequences each document has (0: an empty one).
struct EncodedDocuments {
  std::vector<std::byte> ids;
  std::vector<int32_t> lengths;
  std::vector<int32_t> sequences;

  struct Sizes {
    size_t ids = 0, lengths = 0, sequences = 0;
  };
  Sizes sizes() const { return {ids.size(), lengths.size(), sequences.size()}; }
  // Forgets what came after. REQUIRES: what sizes() was once, and nothing cut since.
  void cut_to(const Sizes& earlier);
  void clear() { cut_to({}); }

  // Appends a sequence. An id that the type cannot hold, or more than 2^31 - 1 of them, is a Data
  // error.
  void add_sequence(std::span<const int32_t> tokens, TokenType type);
};

class TokenFileWriter {
 public:
  TokenFileWriter(const std::filesystem::path& prefix, TokenType type);

  // REQUIRES: at most 2^31 - 1 ids, each of which the type can hold (else Data errors).
  void add_sequence(std::span<const int32_t> ids);
  // The sequences since the last call are one document; there may be none.
  void end_document();

  // Any number of whole documents, or parts of them: the counts need to match only at the end.
  void add_ids(std::span<const std::byte> ids);
  void add_lengths(std::span<const int32_t> lengths);
  void add_documents(std::span<const int32_t> sequences);
  void add(const EncodedDocuments& documents);
  // All documents of another file. Data error when its ids have another type, or when it has
  // pictures.
  void add(const TokenFile& file);

  void commit();

  TokenType type() const { return type_; }
  int64_t sequences() const { return sequences_ + static_cast<int64_t>(pending_.lengths.size()); }
  int64_t documents() const { return documents_ + static_cast<int64_t>(pending_.sequences.size()); }
  int64_t tokens() const {
    return tokens_ + static_cast<int64_t>(pending_.ids.size() / size_of(type_));
  }

 private:
  void flush();
  void write_index();

  std::filesystem::path prefix_;
  TokenType type_;
  AtomicFile bin_, idx_;     // idx_: the header, which is written last, and the lengths
  SpoolFile document_ends_;  // i64
  EncodedDocuments pending_;
  int64_t tokens_ = 0, sequences_ = 0, documents_ = 0;  // written
  int64_t open_ = 0;   // sequences of the document that has not ended
  int64_t ended_ = 0;  // sequences of the documents written
};

}  // namespace bev
