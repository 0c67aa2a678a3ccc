#include "base/format.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/integer.h"

namespace bev {
namespace {

TEST(Format, NumbersForPeople) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(as_bytes(1023), "1023 B");
  EXPECT_EQ(as_bytes(6442450944.0), "6.00 GiB");
  EXPECT_EQ(as_duration(0.521), "0.52 s");
  EXPECT_EQ(as_duration(200), "3 min 20 s");
  EXPECT_EQ(as_duration(7500), "2 h 05 min");
  EXPECT_EQ(as_duration(31.0 * 86400 + 8 * 3600), "31 d 8 h");
}

TEST(Integer, SaysWhatItExpects) {
  EXPECT_EQ(div_exact(12, 4), 3);
  EXPECT_THROW(div_exact(13, 4), Error);
  EXPECT_EQ(div_ceil(13, 4), 4);
  EXPECT_EQ(round_up(13, 4), 16);
  EXPECT_THROW(narrow<int8_t>(300), Error);
}

TEST(ErrorContext, IsRecordedOutermostFirst) {
  const ErrorContext outer("reading a model");
  const ErrorContext inner("reading shard 3");
  const Error error(ErrorKind::Data, "short");
  EXPECT_EQ(error.context, (std::vector<std::string>{"reading a model", "reading shard 3"}));
  EXPECT_EQ(exit_code(error.kind), 3);
}

}  // namespace
}  // namespace bev
