#include "data/batch.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "base/integer.h"

namespace bev {

namespace {

// Fields begin where a device may read them.
constexpr size_t kFieldAlignment = 256;

double sum_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v);
  return sum;
}

}  // namespace

DType dtype_of(BatchField field) {
  switch (field) {
    case BatchField::Weight:
    case BatchField::LabelWeight: return DType::f32;
    case BatchField::Rows: return DType::i64;
    case BatchField::Tokens:
    case BatchField::Targets:
    case BatchField::Positions:
    case BatchField::DocumentStart:
    case BatchField::Types:
    case BatchField::Lengths:
    case BatchField::Marked:
    case BatchField::Pooled:
    case BatchField::Label: break;
  }
  return DType::i32;
}

BatchSpec causal_batch(int64_t length, bool packed) {
  BatchSpec spec;
  for (const BatchField field : {BatchField::Tokens, BatchField::Targets, BatchField::Positions,
                                 BatchField::Weight, BatchField::Rows})
    spec.push_back({field, length});
  if (packed) spec.push_back({BatchField::DocumentStart, length});
  return spec;
}

BatchSpec masked_batch(int64_t length, int64_t marked) {
  BatchSpec spec;
  for (const BatchField field :
       {BatchField::Tokens, BatchField::Positions, BatchField::Rows, BatchField::Types})
    spec.push_back({field, length});
  for (const BatchField field : {BatchField::Marked, BatchField::Targets, BatchField::Weight})
    spec.push_back({field, marked});
  for (const BatchField field :
       {BatchField::Lengths, BatchField::Pooled, BatchField::Label, BatchField::LabelWeight})
    spec.push_back({field, 1});
  return spec;
}

HostBatch::HostBatch(const HostBatch& other)
    : sequences(other.sequences),
      length(other.length),
      fields_(other.fields_),
      block_(other.block_) {
  bind();
}

HostBatch& HostBatch::operator=(HostBatch other) noexcept {
  sequences = other.sequences;
  length = other.length;
  fields_.swap(other.fields_);
  block_.swap(other.block_);
  bind();
  return *this;
}

double HostBatch::valid_tokens() const { return sum_of(weight); }

double HostBatch::valid_sequences() const {
  return label_weight.empty() ? static_cast<double>(sequences) : sum_of(label_weight);
}

void HostBatch::exclude(int64_t at) {
  const int64_t each = targets_each();
  std::fill_n(weight.begin() + at * each, each, 0.0f);
  if (!label_weight.empty()) label_weight[static_cast<size_t>(at)] = 0;
}

void HostBatch::resize(int64_t sequence_count, const BatchSpec& spec) {
  sequences = sequence_count;
  length = 0;
  fields_.clear();
  size_t bytes = 0;
  for (const FieldExtent& field : spec) {
    if (field.field == BatchField::Tokens) length = field.extent;
    const int64_t elements = sequences * field.extent;
    fields_.push_back({field.field, bytes, elements});
    bytes += static_cast<size_t>(elements) * size_of(dtype_of(field.field));
    bytes = static_cast<size_t>(round_up(static_cast<int64_t>(bytes), kFieldAlignment));
  }
  block_.resize(bytes);
  bind();
}

// Points the views into the block.
void HostBatch::bind() {
  const auto point = [&]<class T>(FieldView<T>& view, BatchField field) {
    view = {};
    for (const Placed& placed : fields_)
      if (placed.field == field)
        view = {reinterpret_cast<T*>(block_.data() + placed.offset),
                static_cast<size_t>(placed.elements)};
  };
  point(tokens, BatchField::Tokens);
  point(targets, BatchField::Targets);
  point(positions, BatchField::Positions);
  point(weight, BatchField::Weight);
  point(rows, BatchField::Rows);
  point(document_start, BatchField::DocumentStart);
  point(types, BatchField::Types);
  point(lengths, BatchField::Lengths);
  point(marked, BatchField::Marked);
  point(pooled, BatchField::Pooled);
  point(label, BatchField::Label);
  point(label_weight, BatchField::LabelWeight);
}

ConstTensor& MicroBatch::operator[](BatchField field) {
  switch (field) {
    case BatchField::Tokens: return tokens;
    case BatchField::Targets: return targets;
    case BatchField::Positions: return positions;
    case BatchField::Weight: return weight;
    case BatchField::Rows: return rows;
    case BatchField::DocumentStart: return document_start;
    case BatchField::Types: return types;
    case BatchField::Lengths: return lengths;
    case BatchField::Marked: return marked;
    case BatchField::Pooled: return pooled;
    case BatchField::Label: return label;
    case BatchField::LabelWeight: break;
  }
  return label_weight;
}

void HostBatch::start_sequence(int64_t at, int64_t sample) {
  const int64_t first = at * length;
  std::iota(positions.begin() + first, positions.begin() + first + length, 0);
  std::fill_n(weight.begin() + first, length, 1.0f);
  number_rows(at, sample);
  if (!document_start.empty()) std::fill_n(document_start.begin() + first, length, 0);
}

void HostBatch::number_rows(int64_t at, int64_t sample) {
  const auto first = rows.begin() + at * length;
  std::iota(first, first + length, sample * length);
}

void HostBatch::separate(int64_t at, int64_t begin, int64_t end) {
  const int64_t first = at * length;
  std::iota(positions.begin() + first + begin, positions.begin() + first + end, 0);
  std::fill(document_start.begin() + first + begin, document_start.begin() + first + end,
            static_cast<int32_t>(begin));
}

std::string describe_source(int64_t index, const SampleSource& source, int64_t tokens) {
  const SampleSource::Piece& first = source.pieces.front();
  return format("sample {}: {} tokens of {} from token {} of sequence {} on", index, tokens,
                source.file, first.offset, first.sequence);
}

void apply_document_ends(const EodRules& ends, HostBatch& batch, int64_t at) {
  int32_t document = 0;  // the position where the current one begins
  for (int64_t i = 0; i < batch.length; ++i) {
    const auto slot = static_cast<size_t>(at * batch.length + i);
    const auto position = static_cast<int32_t>(i);
    if (ends.reset_positions) batch.positions[slot] = position - document;
    if (ends.reset_attention) batch.document_start[slot] = document;
    if (batch.tokens[slot] != ends.eod) continue;
    if (ends.mask_eod) batch.weight[slot] = 0.0f;
    document = position + 1;
  }
}

}  // namespace bev
