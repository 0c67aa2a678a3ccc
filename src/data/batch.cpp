#include "data/batch.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
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
  TextSpec spec;
  for (const BatchField field : {BatchField::Tokens, BatchField::Targets, BatchField::Positions,
                                 BatchField::Weight, BatchField::Rows})
    spec.push_back({field, length});
  if (packed) spec.push_back({BatchField::DocumentStart, length});
  return {{spec}};
}

BatchSpec masked_batch(int64_t length, int64_t marked) {
  TextSpec spec;
  for (const BatchField field :
       {BatchField::Tokens, BatchField::Positions, BatchField::Rows, BatchField::Types})
    spec.push_back({field, length});
  for (const BatchField field : {BatchField::Marked, BatchField::Targets, BatchField::Weight})
    spec.push_back({field, marked});
  for (const BatchField field :
       {BatchField::Lengths, BatchField::Pooled, BatchField::Label, BatchField::LabelWeight})
    spec.push_back({field, 1});
  return {{spec}};
}

BatchSpec encoder_decoder_batch(int64_t encoder_length, int64_t decoder_length) {
  TextSpec encoder, decoder;
  for (const BatchField field : {BatchField::Tokens, BatchField::Positions, BatchField::Rows})
    encoder.push_back({field, encoder_length});
  decoder = causal_batch(decoder_length, false).texts.front();
  encoder.push_back({BatchField::Lengths, 1});
  decoder.push_back({BatchField::Lengths, 1});
  return {{encoder, decoder}};
}

BatchSpec query_context_batch(int64_t length, bool joined) {
  TextSpec text;
  for (const BatchField field :
       {BatchField::Tokens, BatchField::Positions, BatchField::Rows, BatchField::Types})
    text.push_back({field, length});
  for (const BatchField field : {BatchField::Lengths, BatchField::Pooled})
    text.push_back({field, 1});
  TextSpec query = text;
  query.push_back({BatchField::LabelWeight, 1});
  return {.texts = {query, text}, .joined = joined};
}

double HostText::valid_tokens() const { return sum_of(weight); }

void HostText::exclude(int64_t at) {
  const int64_t each = targets_each();
  std::fill_n(weight.begin() + at * each, each, 0.0f);
  if (!label_weight.empty()) label_weight[static_cast<size_t>(at)] = 0;
}

HostBatch::HostBatch(const HostBatch& other)
    : HostText(other),
      texts_(other.texts_),
      joined_(other.joined_),
      second_(other.second_),
      fields_(other.fields_),
      block_(other.block_) {
  bind();
}

HostBatch& HostBatch::operator=(HostBatch other) noexcept {
  HostText::operator=(other);
  texts_ = other.texts_;
  joined_ = other.joined_;
  second_ = other.second_;
  fields_.swap(other.fields_);
  block_.swap(other.block_);
  bind();
  return *this;
}

int64_t HostBatch::tokens_count() const {
  return HostText::tokens_count() + second_.tokens_count();
}

double HostBatch::valid_tokens() const { return HostText::valid_tokens() + second_.valid_tokens(); }

double HostBatch::valid_sequences() const {
  return label_weight.empty() ? static_cast<double>(sequences) : sum_of(label_weight);
}

void HostBatch::exclude(int64_t at) {
  for (size_t i = 0; i < texts_; ++i) text(i).HostText::exclude(at);
}

void HostBatch::number_rows(int64_t at, int64_t sample) {
  for (size_t i = 0; i < texts_; ++i) {
    // Texts that one encoder reads must not draw the same dropout.
    const int64_t number = joined_ ? 2 * sample + static_cast<int64_t>(i) : sample;
    text(i).HostText::number_rows(at, number);
  }
}

void HostBatch::resize(int64_t sequence_count, const BatchSpec& spec) {
  BEV_CHECK(spec.texts.size() <= kMostTexts, Internal, "{} texts", spec.texts.size());
  texts_ = spec.texts.size();
  joined_ = spec.joined;
  fields_.clear();
  size_t bytes = 0;
  const auto place = [&](size_t i, const FieldExtent& field) {
    const int64_t elements = sequence_count * field.extent;
    fields_.push_back({i, field.field, bytes, elements});
    bytes += static_cast<size_t>(elements) * size_of(dtype_of(field.field));
  };
  const auto align = [&] {
    bytes = static_cast<size_t>(round_up(static_cast<int64_t>(bytes), kFieldAlignment));
  };
  for (size_t i = 0; i < texts_; ++i) {
    HostText& t = text(i);
    t.sequences = sequence_count;
    t.length = 0;
    for (const FieldExtent& field : spec.texts[i])
      if (field.field == BatchField::Tokens) t.length = field.extent;
    t.first_row = joined_ && i > 0 ? sequence_count * t.length : 0;
    if (joined_ && i > 0) continue;
    for (const FieldExtent& field : spec.texts[i]) {
      place(i, field);
      if (joined_)
        for (const FieldExtent& other : spec.texts[i + 1])
          if (other.field == field.field) place(i + 1, other);
      align();
    }
  }
  block_.resize(bytes);
  bind();
}

// Points the views into the block.
void HostBatch::bind() {
  for (size_t i = 0; i < kMostTexts; ++i) {
    HostText& t = text(i);
    const auto point = [&]<class T>(FieldView<T>& view, BatchField field) {
      view = {};
      for (const Placed& placed : fields_)
        if (placed.text == i && placed.field == field)
          view = {reinterpret_cast<T*>(block_.data() + placed.offset),
                  static_cast<size_t>(placed.elements)};
    };
    point(t.tokens, BatchField::Tokens);
    point(t.targets, BatchField::Targets);
    point(t.positions, BatchField::Positions);
    point(t.weight, BatchField::Weight);
    point(t.rows, BatchField::Rows);
    point(t.document_start, BatchField::DocumentStart);
    point(t.types, BatchField::Types);
    point(t.lengths, BatchField::Lengths);
    point(t.marked, BatchField::Marked);
    point(t.pooled, BatchField::Pooled);
    point(t.label, BatchField::Label);
    point(t.label_weight, BatchField::LabelWeight);
  }
}

ConstTensor& TextView::operator[](BatchField field) {
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

void HostText::start_sequence(int64_t at, int64_t sample) {
  const int64_t first = at * length;
  std::iota(positions.begin() + first, positions.begin() + first + length, 0);
  std::fill_n(weight.begin() + first, length, 1.0f);
  number_rows(at, sample);
  if (!document_start.empty()) std::fill_n(document_start.begin() + first, length, 0);
}

void HostText::number_rows(int64_t at, int64_t sample) {
  const auto first = rows.begin() + at * length;
  std::iota(first, first + length, sample * length);
}

void HostText::separate(int64_t at, int64_t begin, int64_t end) {
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
