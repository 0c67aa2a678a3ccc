#include "text/huggingface/byte_trie.h"

#include <algorithm>
#include <deque>

namespace bev {

namespace {

// The strings from..to share their first `depth` bytes, which lead to the node.
struct Open {
  uint32_t node;
  size_t from, to, depth;
};

}  // namespace

ByteTrie::ByteTrie(std::vector<std::pair<std::string, int32_t>> strings) : nodes_(1), bytes_(1) {
  std::sort(strings.begin(), strings.end());
  std::deque<Open> open{{0, 0, strings.size(), 0}};
  while (!open.empty()) {
    Open now = open.front();
    open.pop_front();
    if (now.from < now.to && strings[now.from].first.size() == now.depth)
      nodes_[now.node].number = strings[now.from++].second;
    nodes_[now.node].children = static_cast<uint32_t>(nodes_.size());
    for (size_t from = now.from; from < now.to;) {
      const auto byte = static_cast<unsigned char>(strings[from].first[now.depth]);
      size_t to = from + 1;
      while (to < now.to && static_cast<unsigned char>(strings[to].first[now.depth]) == byte) ++to;
      open.push_back({static_cast<uint32_t>(nodes_.size()), from, to, now.depth + 1});
      if (now.node == 0) first_[byte] = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
      bytes_.push_back(byte);
      ++nodes_[now.node].count;
      from = to;
    }
  }
}

uint32_t ByteTrie::child(uint32_t node, unsigned char byte) const {
  const auto begin = bytes_.begin() + nodes_[node].children, end = begin + nodes_[node].count;
  const auto found =
      nodes_[node].count <= 8 ? std::find(begin, end, byte) : std::lower_bound(begin, end, byte);
  return found == end || *found != byte ? 0 : static_cast<uint32_t>(found - bytes_.begin());
}

}  // namespace bev
