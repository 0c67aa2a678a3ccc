// Strings with a number each, found as beginnings of a text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bev {

class ByteTrie {
 public:
  // REQUIRES: no string twice, none empty, numbers not negative.
  explicit ByteTrie(std::vector<std::pair<std::string, int32_t>> strings = {});

  bool empty() const { return nodes_.size() == 1; }

  // Whether a string begins with the byte.
  bool begins(char byte) const { return first_[static_cast<unsigned char>(byte)] != 0; }

  // Calls found(length, number) for each string that the text begins with, the shortest first.
  template <class Found>
  void beginnings(std::string_view text, Found&& found) const {
    if (text.empty()) return;
    uint32_t node = first_[static_cast<unsigned char>(text[0])];
    for (size_t length = 1; node != 0; ++length) {
      if (nodes_[node].number >= 0) found(length, nodes_[node].number);
      if (length == text.size()) return;
      node = child(node, static_cast<unsigned char>(text[length]));
    }
  }

 private:
  // The children of a node stand together, sorted by the byte that leads to them.
  struct Node {
    uint32_t children = 0, count = 0;
    int32_t number = -1;
  };

  uint32_t child(uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;            // the root is the first, so 0 can stand for nothing
  std::vector<unsigned char> bytes_;   // that lead to the node
  std::array<uint32_t, 256> first_{};  // the root's children by byte
};

}  // namespace bev
