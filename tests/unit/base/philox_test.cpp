#include "base/philox.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

// The known answers that come with the authors' library (Random123, philox4x32-10).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// As above, philox4x32-7.
TEST(Philox, GivesTheKnownAnswersOfSevenRounds) {
  EXPECT_EQ(philox<7>(0, 0, 0), (PhiloxBlock{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(philox<7>(ones, ones, ones),
            (PhiloxBlock{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox<7>(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxBlock{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(Philox, KeysDependOnEveryPart) {
  EXPECT_NE(mix_key(1, "ab"), mix_key(1, "ba"));
  EXPECT_NE(mix_key(1, "a"), mix_key(2, "a"));
  EXPECT_NE(mix_key(mix_key(0, "a"), "b"), mix_key(0, "ab"));
}

}  // namespace
}  // namespace bev
