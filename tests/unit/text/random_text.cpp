#include "unit/text/random_text.h"

#include <array>

#include "text/utf8.h"

namespace bev::test {

std::string random_text(std::mt19937& random, size_t characters) {
  static constexpr std::array<std::array<char32_t, 2>, 12> kRanges = {{{0x20, 0x7E},
                                                                       {0x41, 0x7A},
                                                                       {0x09, 0x0D},
                                                                       {0x20, 0x20},
                                                                       {0xA0, 0x24F},
                                                                       {0x300, 0x345},
                                                                       {0x370, 0x1FFF},
                                                                       {0x1100, 0x11FF},
                                                                       {0x2000, 0x303F},
                                                                       {0x4E00, 0xD7FF},
                                                                       {0xE000, 0xFFFF},
                                                                       {0x10000, 0x10FFFF}}};
  std::string text;
  for (size_t left = random() % (characters + 1); left > 0; --left) {
    const auto& [first, last] = kRanges[random() % kRanges.size()];
    append_utf8(first + static_cast<char32_t>(random() % (last - first + 1)), text);
  }
  return text;
}

}  // namespace bev::test
