#include "comm/shared_text.h"

#include <algorithm>

namespace bev {

std::string shared_text(Communicator& ranks, const std::string& here, int root) {
  constexpr size_t kBytes = 7;  // of a number that is not negative
  const bool is_root = ranks.rank() == root;
  const auto size =
      static_cast<size_t>(ranks.largest(is_root ? static_cast<int64_t>(here.size()) : 0));
  std::string text;
  while (text.size() < size) {
    uint64_t packed = 0;
    for (size_t i = 0; is_root && i < std::min(kBytes, size - text.size()); ++i)
      packed |= uint64_t{static_cast<unsigned char>(here[text.size() + i])} << (8 * i);
    packed = static_cast<uint64_t>(ranks.largest(static_cast<int64_t>(packed)));
    for (size_t i = std::min(kBytes, size - text.size()); i > 0; --i, packed >>= 8)
      text.push_back(static_cast<char>(packed & 0xff));
  }
  return text;
}

}  // namespace bev
