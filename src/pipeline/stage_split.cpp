#include "pipeline/stage_split.h"

#include "base/check.h"
#include "config/resolve.h"

namespace bev {

namespace {

// The first block of each stage of a segment: the first stage has `first` blocks and the last one
// `last`, if these are above 0; the others about the same number each.
std::vector<int64_t> first_blocks(int64_t count, int64_t stages, int64_t first, int64_t last) {
  const int64_t own_front = first > 0 ? 1 : 0, own_back = last > 0 ? 1 : 0;  // stages
  const int64_t even_stages = stages - own_front - own_back;
  std::vector<int64_t> begins{0};
  for (int64_t stage = 1; stage < stages; ++stage)
    begins.push_back(even_stages == 0
                         ? first
                         : first + (count - first - last) * (stage - own_front) / even_stages);
  return begins;
}

}  // namespace

std::vector<StageParts> split_stages(const ModelSpec& spec, const Config& config) {
  const int64_t stages = layout_of(config).stages();
  std::vector<Segment> segments = spec.segments;
  if (segments.empty()) segments = {{spec.parts.size(), stages}};
  std::vector<StageParts> all;
  int64_t block = 0;
  size_t part = 0;
  for (const Segment& segment : segments) {
    std::vector<size_t> blocks;  // their parts
    for (size_t i = part; i < segment.end; ++i)
      if (std::holds_alternative<BlockSpec>(spec.parts[i].is)) blocks.push_back(i);
    const auto count = std::ssize(blocks);
    const bool is_front = all.empty(), is_back = segment.end == spec.parts.size();
    std::vector<int64_t> begins =
        first_blocks(count, segment.stages, is_front ? config.parallel.first_layers : 0,
                     is_back ? config.parallel.last_layers : 0);
    begins.push_back(count);
    for (size_t i = 0; i + 1 < begins.size(); ++i) {
      const bool ends = i + 2 == begins.size();
      BEV_CHECK(ends || (begins[i] < begins[i + 1] && begins[i + 1] < count), Internal,
                "{} blocks for {} pipeline stages", count, segment.stages);
      const size_t end = ends ? segment.end : blocks[static_cast<size_t>(begins[i + 1])];
      all.push_back({.parts = {part, end},
                     .first_block = block + begins[i],
                     .blocks = begins[i + 1] - begins[i],
                     .is_first = all.empty(),
                     .is_last = end == spec.parts.size()});
      part = end;
    }
    block += count;
  }
  BEV_CHECK(std::ssize(all) == stages, Internal, "{} of {} pipeline stages", all.size(), stages);
  return all;
}

}  // namespace bev
