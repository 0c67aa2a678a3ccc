#include "ops/relative_bias.h"

#include "ops/op_table.h"
#include "ops/operands.h"

namespace bev::ops {

namespace {

void check_positions(const Operands& args, const RelativePositions& p, const ConstTensor& bias,
                     int64_t buckets) {
  args.require(RelativeBuckets::are_valid(buckets, p.max_distance, p.bidirectional),
               "invalid number of buckets or max_distance");
  constexpr int64_t kMost = int64_t{1} << 31;
  args.require(
      bias.shape[1] + bias.shape[2] < kMost && p.query_offset < kMost && p.query_offset > -kMost,
      "a position needs more than 32 bits");
}

}  // namespace

void relative_bias(Exec& ex, const RelativeBias& r) {
  const Operands args(ex, "relative_bias");
  args.set_pass(Phase::Forward);
  args.rank("table", r.table, 2);
  args.rank("bias", r.bias, 3);
  args.floating("table", r.table);
  args.read("table", r.table, r.table.shape, r.table.dtype);
  check_positions(args, r.positions, r.bias, r.table.shape[0]);
  const Shape bias{r.table.shape[1], r.bias.shape[1], r.bias.shape[2]};
  args.write("bias", r.bias, bias, r.table.dtype);
  ex.device.ops().relative_bias(ex, r);
}

void relative_bias_backward(Exec& ex, const RelativeBiasBackward& r) {
  const Operands args(ex, "relative_bias_backward");
  args.rank("dtable", r.dtable, 2);
  args.rank("dbias", r.dbias, 3);
  args.floating("dbias", r.dbias);
  const DType sums = r.dbias.dtype;
  args.require(accumulation_of(sums) == sums, "dbias is not of an accumulation type");
  check_positions(args, r.positions, r.dbias, r.dtable.shape[0]);
  const Shape dbias{r.dtable.shape[1], r.dbias.shape[1], r.dbias.shape[2]};
  args.read("dbias", r.dbias, dbias, sums);
  args.update("dtable", r.dtable, r.dtable.shape, sums);
  ex.device.ops().relative_bias_backward(ex, r);
}

}  // namespace bev::ops
