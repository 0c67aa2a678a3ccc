#include "base/crypto.h"

#include <gtest/gtest.h>

#include <string>

#include "base/format.h"

namespace bev {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string digits_of(const Sha256Digest& digest) {
  std::string text;
  for (const std::byte each : digest) text += format("{:02x}", std::to_integer<unsigned>(each));
  return text;
}

// Examples of FIPS 180-4.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256(bytes_of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256(bytes_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(bytes_of(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Fails when a piece that ends inside a block is lost or counted twice.
TEST(Sha256, PiecesOfAnySizeGiveTheSame) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t size = 0; size <= text.size(); size += size < 140 ? 1 : 31) {
    const std::string whole = text.substr(0, size);
    for (const size_t piece : {1, 3, 63, 64, 65, 127}) {
      Sha256 sum;
      for (size_t at = 0; at < size; at += piece) {
        sum.add(bytes_of(whole.substr(at, piece)));
        (void)sum.digest();  // changes nothing
      }
      EXPECT_EQ(digits_of(sum.digest()), sha256(bytes_of(whole))) << size << " by " << piece;
    }
  }
}

struct Vector {
  std::string key, text, tag;
};

// The test cases of RFC 4231 but the fifth, which is cut short.
TEST(Hmac, VectorsOfRfc4231) {
  std::string counted;
  for (char c = 1; c <= 25; ++c) counted += c;
  const Vector vectors[] = {
      {std::string(20, '\x0b'), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counted, std::string(50, '\xcd'),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The "
       "key needs to be hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  for (const Vector& each : vectors) {
    const HmacKey key(each.key);
    EXPECT_EQ(digits_of(key.sign({bytes_of(each.text)})), each.tag) << each.text;
    const std::string front = each.text.substr(0, 5), rest = each.text.substr(5);
    EXPECT_EQ(digits_of(key.sign({bytes_of(front), bytes_of(rest)})), each.tag) << each.text;
  }
}

TEST(Hmac, EveryByteOfATagCounts) {
  Sha256Digest a{}, b{};
  EXPECT_TRUE(same_tag(a, b));
  for (size_t i = 0; i < a.size(); ++i) {
    b = a;
    b[i] ^= std::byte{0x10};
    EXPECT_FALSE(same_tag(a, b)) << i;
  }
}

TEST(RandomBytes, AreNotTheSameTwice) {
  Sha256Digest a{}, b{};
  fill_random(a);
  fill_random(b);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace bev
