// What the checked fronts share: each operand is stated once, with its shape and dtype, and is
// thereby both checked and counted. Nothing here allocates unless it throws.
#pragma once

#include "device/exec.h"
#include "ops/elementwise.h"

namespace bev::ops {

// The operands of one call. A mismatch is an Internal error that names the op, the operand, what
// was found and what was expected: the caller is our own code.
class Operands {
 public:
  // The operands live as long as the call, so a trace measures from here to the destructor.
  Operands(const Exec& ex, const char* op)
      : op_(op),
        cost_(ex.cost),
        trace_(ex.trace),
        stream_(ex.stream),
        has_memory_(ex.device.kind() != DeviceKind::Null) {
    if (cost_ != nullptr) begin_record();
    if (trace_ != nullptr) trace_->begin(op, stream_);
  }
  ~Operands() {
    if (trace_ != nullptr) trace_->end(stream_);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  // For the tensor whose extents the others are measured by.
  void rank(const char* name, const ConstTensor& t, int expected) const;
  void floating(const char* name, const ConstTensor& t) const;

  // Checks without counting.
  void check(const char* name, const ConstTensor& t, const Shape& shape, DType dtype) const;
  void absent(const char* name, const ConstTensor& t) const;
  void contiguous(const char* name, const ConstTensor& t) const;

  // Checks, and counts the bytes as read, as written, or as both.
  void read(const char* name, const ConstTensor& t, const Shape& shape, DType dtype) const;
  void write(const char* name, const Tensor& t, const Shape& shape, DType dtype) const;
  void update(const char* name, const Tensor& t, const Shape& shape, DType dtype) const;

  void count_bytes(size_t bytes) const;
  // `model_flops`: by the rule of docs/performance.md. An update has none.
  void count_flops(double flops, double model_flops) const;
  // The pass that a call belongs to, where the op tells. A forward pass within a backward
  // instruction is recomputed.
  void set_pass(Phase pass) const;
  // The record of this call; null: costs are not recorded.
  OpCost* record() const { return cost_ != nullptr ? &(*cost_)[record_] : nullptr; }

  // An error about something other than one tensor.
  void require(bool condition, const char* what) const;

 private:
  void begin_record();
  // The first operand names the record's shape.
  void count(const ConstTensor& t, size_t times) const;

  const char* op_;
  CostLog* cost_;
  size_t record_ = 0;  // its index in the log
  Trace* trace_;
  Stream stream_;
  bool has_memory_;
};

// The product of all extents but the last. REQUIRES: rank >= 1.
int64_t leading_elements(const Shape& shape);

// The check of a Dropout, which several ops carry.

inline void check_dropout(const Operands& args, const Dropout& d, int64_t rows) {
  args.require(d.probability >= 0 && d.probability < 1, "dropout probability outside [0, 1)");
  args.require(d.column_begin >= 0, "dropout column_begin is negative");
  if (d.probability > 0) args.read("dropout.rows", d.rows, {rows}, DType::i64);
}

}  // namespace bev::ops
