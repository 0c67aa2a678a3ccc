// Micro-batches: what a step of the model reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace bev {

// `sequences` of equal length, one after the other, in host memory. All vectors have
// sequences * length entries except the optional one.
struct HostBatch {
  int64_t sequences = 0, length = 0;
  std::vector<int32_t> tokens, targets, positions;
  std::vector<float> weight;            // 1 where the token counts in the loss, else 0
  std::vector<int64_t> rows;            // logical row: sample * length + position
  std::vector<int32_t> document_start;  // packed documents: first key a token sees; empty: 0

  int64_t tokens_count() const { return sequences * length; }
  double valid_tokens() const;

  // Sizes all vectors for `sequences` x `length`; the caller fills them.
  void resize(int64_t sequence_count, int64_t sequence_length, bool packed);

  // Makes sequence `at` one of a sample without borders: positions 0, 1, ..., every token counts
  // and sees all before it. The caller fills tokens and targets.
  void start_sequence(int64_t at, int64_t sample);
  // The logical rows of sequence `at` are those of this sample.
  void number_rows(int64_t at, int64_t sample);
  // The tokens [begin, end) of sequence `at` stand alone: positions from 0 on, nothing before them
  // is seen.
  void separate(int64_t at, int64_t begin, int64_t end);
};

// The same on the device.
struct MicroBatch {
  int64_t sequences = 0, length = 0;
  ConstTensor tokens, targets, positions;  // i32 [tokens]
  ConstTensor weight;                      // f32 [tokens]
  ConstTensor rows;                        // i64 [tokens]
  ConstTensor document_start{};            // i32 [tokens], may be absent

  int64_t tokens_count() const { return sequences * length; }
};

// Where a sample was found, for people.
struct SampleSource {
  // A run of its tokens that stand together in the file.
  struct Piece {
    int64_t sequence = 0, offset = 0;  // of the file, of the sequence
    int64_t tokens = 0;
  };

  std::string file{};              // empty: not from a file
  std::optional<int64_t> epoch{};  // of that file, from 0; none where epochs are mixed
  std::vector<Piece> pieces{};     // in the order of the sample, its last target included
};

// "sample 7: 512 tokens of PREFIX from token 12 of sequence 3 on". REQUIRES: there is a piece.
std::string describe_source(int64_t index, const SampleSource& source, int64_t tokens);

// Where samples come from. Sample i is a pure function of i, so that any rank can ask for any.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // Fills sequence `at` of the batch with sample `index`. Does not allocate.
  virtual void read(int64_t index, HostBatch& batch, int64_t at) const = 0;
  // Where sample `index` comes from, for messages.
  virtual std::string describe(int64_t index) const = 0;
  // The same in detail; without pieces where there is nothing to say.
  virtual SampleSource source(int64_t /*index*/) const { return {}; }
};

// What happens at the end of a document, a token with an id of its own.

struct EodRules {
  int64_t eod = -1;  // the id
  bool mask_eod = false, reset_positions = false, reset_attention = false;

  bool matter() const { return mask_eod || reset_positions || reset_attention; }
};

// Applies it to the tokens of sequence `at`. The end belongs to the document it ends; what follows
// it starts anew. REQUIRES: start_sequence(at, ...) was called; the batch is packed when attention
// is reset.
void apply_document_ends(const EodRules& ends, HostBatch& batch, int64_t at);

}  // namespace bev
