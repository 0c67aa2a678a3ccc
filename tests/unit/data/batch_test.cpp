#include "data/batch.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/make_device.h"
#include "pipeline/batch_uploader.h"

namespace bev {
namespace {

// Fields of unequal extent: a weight for every token, one row for every sequence.
BatchSpec uneven_fields() {
  return {{{{BatchField::Tokens, 7}, {BatchField::Weight, 7}, {BatchField::Rows, 1}}}};
}

HostBatch filled_batch() {
  HostBatch batch;
  batch.resize(3, uneven_fields());
  std::iota(batch.tokens.begin(), batch.tokens.end(), 100);
  std::iota(batch.weight.begin(), batch.weight.end(), 0.5F);
  std::iota(batch.rows.begin(), batch.rows.end(), int64_t{1} << 40);
  return batch;
}

TEST(HostBatch, FieldsLieInOneBlockWithoutOverlap) {
  const HostBatch batch = filled_batch();
  EXPECT_EQ(batch.length, 7);
  EXPECT_EQ(batch.tokens.size(), 21U);
  EXPECT_EQ(batch.rows.size(), 3U);
  EXPECT_TRUE(batch.targets.empty());
  size_t end = 0;
  for (const HostBatch::Placed& placed : batch.fields()) {
    EXPECT_EQ(placed.offset % 256, 0U);
    EXPECT_GE(placed.offset, end);
    end = placed.offset + static_cast<size_t>(placed.elements) * size_of(dtype_of(placed.field));
  }
  EXPECT_LE(end, batch.block().size());
  EXPECT_EQ(batch.tokens.back(), 120);
  EXPECT_EQ(batch.weight.back(), 20.5F);
}

TEST(HostBatch, ACopyHasItsOwnBlock) {
  HostBatch batch = filled_batch();
  const HostBatch copy = batch;
  HostBatch assigned;
  assigned = batch;
  batch.tokens.front() = -1;
  EXPECT_EQ(copy.tokens.front(), 100);
  EXPECT_EQ(assigned.tokens.front(), 100);
  const HostBatch moved = std::move(batch);
  EXPECT_EQ(moved.tokens.front(), -1);
  EXPECT_EQ(moved.rows.back(), (int64_t{1} << 40) + 2);
}

TEST(BatchUploader, EveryFieldArrives) {
  const std::unique_ptr<Device> device = make_device({.kind = DeviceKind::Cpu});
  const HostBatch batch = filled_batch();
  BatchUploader uploader(*device, batch.block().size(), 1);
  const TextView micro = uploader.upload(batch, 0)[0];
  EXPECT_FALSE(micro.targets.present());
  ASSERT_EQ(micro.tokens.shape[0], 21);
  ASSERT_EQ(micro.rows.shape[0], 3);
  std::vector<int32_t> tokens(21);
  std::vector<int64_t> rows(3);
  device->download(micro.tokens.data, tokens.data(), 21 * sizeof(int32_t));
  device->download(micro.rows.data, rows.data(), 3 * sizeof(int64_t));
  EXPECT_TRUE(batch.tokens == tokens);
  EXPECT_TRUE(batch.rows == rows);
}

}  // namespace
}  // namespace bev
