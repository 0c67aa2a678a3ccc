#include "text/stories/story_file.h"

#include <string>

#include "base/check.h"
#include "text/stories/story_grammar.h"

namespace bev {

StoryTotals write_stories(AtomicFile& file, const StoryOrder& order,
                          FunctionRef<void(const StoryTotals&)> progress) {
  constexpr size_t kBlock = size_t{1} << 18;
  StoryTotals totals;
  std::string block;
  while (totals.stories < order.min_stories || totals.bytes < order.min_bytes) {
    const int64_t index = order.first + totals.stories;
    BEV_CHECK(order.first >= kFirstValidationStory || index < kFirstValidationStory, Usage,
              "there are only {} stories for training", kFirstValidationStory);
    const Grammar::Text next = scored_story(order.seed, index);
    block += next.text;
    block += '\n';
    ++totals.stories;
    totals.bytes += static_cast<int64_t>(next.text.size()) + 1;
    totals.nats += next.nats;
    if (block.size() < kBlock) continue;
    file.write(block);
    block.clear();
    progress(totals);
  }
  file.write(block);
  return totals;
}

}  // namespace bev
