// Micro-batches: named arrays that a step of the model reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace bev {

// A named array of a batch.
enum class BatchField : uint8_t {
  Tokens,         // i32
  Targets,        // i32
  Positions,      // i32
  Weight,         // f32: 1 if the token counts in the loss, else 0
  Rows,           // i64: logical row, sample * length + position
  DocumentStart,  // i32: with packed documents, the first key that a token sees
  Types,          // i32: segment of the token, 0 or 1
  Lengths,        // i32 [sequences]: tokens before the padding
  // i32: rows of the micro-batch whose tokens are predicted. If a batch has it, Targets and Weight
  // have one entry per marked row.
  Marked,
  Pooled,       // i32 [sequences]: row of the micro-batch from which a sequence is classified
  Label,        // i32 [sequences]: class of the sequence
  LabelWeight,  // f32 [sequences]: 1 if the sequence counts in that loss, else 0
};
DType dtype_of(BatchField field);

// `extent`: elements per sequence.
struct FieldExtent {
  BatchField field;
  int64_t extent;
};
using TextSpec = std::vector<FieldExtent>;

// A sample has one text, or two: T5 reads one with its encoder and one with its decoder. Each has
// its own length and fields.
inline constexpr size_t kMostTexts = 2;
struct BatchSpec {
  std::vector<TextSpec> texts;
  // Texts of one length that the device sees as one: all sequences of the first, then those of the
  // second.
  bool joined = false;
};

// The batch of a causal language model.
BatchSpec causal_batch(int64_t length, bool packed);

// The batch of a masked language model: up to `marked` tokens of a sequence are predicted.
BatchSpec masked_batch(int64_t length, int64_t marked);

// The batch of an encoder-decoder: two padded texts, of which the second is predicted.
inline constexpr int kEncoderText = 0, kDecoderText = 1;
BatchSpec encoder_decoder_batch(int64_t encoder_length, int64_t decoder_length);

// The batch of a bi-encoder: two padded texts of the same length, each with a row that stands for
// it. `joined`: one encoder reads both.
inline constexpr int kQueryText = 0, kContextText = 1;
BatchSpec query_context_batch(int64_t length, bool joined = false);

// A field in host memory: all its elements, sequence after sequence. Empty if the batch lacks it.
template <class T>
class FieldView : public std::span<T> {
 public:
  using std::span<T>::span;
  // NOLINTNEXTLINE(google-explicit-constructor): a copy of the field
  operator std::vector<T>() const { return {this->begin(), this->end()}; }
  template <class Range>
  bool operator==(const Range& other) const {
    return std::equal(this->begin(), this->end(), other.begin(), other.end());
  }
};

// One text of all sequences, in host memory.
class HostText {
 public:
  int64_t sequences = 0, length = 0;
  int64_t first_row = 0;  // among the tokens of the text on the device, of which this may be a part
  FieldView<int32_t> tokens, targets, positions, document_start;
  FieldView<int32_t> types, lengths, marked, pooled, label;
  FieldView<float> weight, label_weight;
  FieldView<int64_t> rows;

  int64_t tokens_count() const { return sequences * length; }
  double valid_tokens() const;
  // Targets of a sequence: its length, or the number of its marked rows.
  int64_t targets_each() const { return std::ssize(targets) / sequences; }
  // Sequence `at` counts in no loss.
  void exclude(int64_t at);

  // Makes sequence `at` a sample without borders: positions 0, 1, ..., every token counts and sees
  // all before it. The caller fills tokens and targets.
  void start_sequence(int64_t at, int64_t sample);
  // The logical rows of sequence `at` are those of this sample.
  void number_rows(int64_t at, int64_t sample);
  // The tokens [begin, end) of sequence `at` are a document: positions from 0 on, and they see
  // nothing before it.
  void separate(int64_t at, int64_t begin, int64_t end);
};

// The fields of all texts in one block of host memory, so that one copy uploads them. The batch
// itself is the first text.
class HostBatch : public HostText {
 public:
  HostBatch() = default;
  HostBatch(const HostBatch& other);
  HostBatch(HostBatch&& other) noexcept = default;
  HostBatch& operator=(HostBatch other) noexcept;
  ~HostBatch() = default;

  size_t text_count() const { return texts_; }
  bool joined() const { return joined_; }
  HostText& text(size_t index) { return index == 0 ? *this : second_; }
  const HostText& text(size_t index) const { return index == 0 ? *this : second_; }

  // Of all texts.
  int64_t tokens_count() const;
  double valid_tokens() const;
  double valid_sequences() const;
  void exclude(int64_t at);
  void number_rows(int64_t at, int64_t sample);

  // Sizes all fields; the caller fills them. The length of a text becomes the extent of its tokens.
  void resize(int64_t sequence_count, const BatchSpec& spec);
  void resize(int64_t sequence_count, int64_t sequence_length, bool packed) {
    resize(sequence_count, causal_batch(sequence_length, packed));
  }

  // A field's place in the block.
  struct Placed {
    size_t text;
    BatchField field;
    size_t offset;
    int64_t elements;
  };
  std::span<const Placed> fields() const { return fields_; }
  std::span<const std::byte> block() const { return block_; }

 private:
  void bind();

  size_t texts_ = 0;
  bool joined_ = false;
  HostText second_;
  std::vector<Placed> fields_;
  std::vector<std::byte> block_;
};

// One text of all sequences, on the device.
struct TextView {
  int64_t sequences = 0, length = 0;
  ConstTensor tokens{}, targets{}, positions{};  // i32 [tokens]
  ConstTensor weight{};                          // f32 [tokens]
  ConstTensor rows{};                            // i64 [tokens]
  // Optional.
  ConstTensor document_start{}, types{};  // i32 [tokens]
  ConstTensor marked{};                   // i32: targets and weight have its extent
  ConstTensor lengths{}, pooled{}, label{}, label_weight{};  // [sequences]

  int64_t tokens_count() const { return sequences * length; }
  ConstTensor& operator[](BatchField field);
};

// A batch on the device.
struct MicroBatch {
  std::array<TextView, kMostTexts> texts{};

  const TextView& operator[](int text) const { return texts[static_cast<size_t>(text)]; }
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

// A dataset that knows how many samples it has.
class CountedDataset : public Dataset {
 public:
  virtual int64_t count() const = 0;
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
