// Small stories from one fixed grammar, with everything about their probabilities known: a model
// that has learnt them reaches nats_per_byte and none can do better (text/stories/grammar.h says
// why).
//
// A story is one line without its newline: a hero and an animal appear, some things happen, the
// hero does something with the animal. Letters, spaces, commas and full stops only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/function_ref.h"
#include "text/stories/grammar.h"

namespace bev {

// The grammar as it is written down.
std::vector<GrammarRule> story_rules();
// The same compiled, made on the first call.
const Grammar& story_grammar();

// Stories below this index are for training, from it on for validation.
inline constexpr int64_t kFirstValidationStory = int64_t{1} << 40;

// Story `index` of a seed, a pure function. Two (seed, index) share a story only by chance, of
// probability about exp(-nats of the story).
std::string story(uint64_t seed, int64_t index);
// The same with its -log p.
Grammar::Text scored_story(uint64_t seed, int64_t index);

// Exact expectations, good to 1e-12 relative. A token is a byte of a story, or the end of a story,
// of which each has one. The end costs nothing: the last sentence announces itself. In a file a
// newline stands where the end token stands, so that nats_per_token is also nats per byte of a
// file.
struct StoryStatistics {
  double nats_per_story, bytes_per_story, nats_per_byte, nats_per_token;
};
StoryStatistics story_statistics();

// -log p of one story; nothing when the grammar does not accept it.
std::optional<double> nats_of(std::string_view story);

// How much of a text (stories, one per line; empty lines mean nothing) the grammar accepts. A
// sentence is what ends with a full stop; it is judged alone, as if its hero and animal were free.
// A line that is not ended by a newline may have been cut: when it is no whole story, it is left
// out of the stories, and its part behind the last full stop out of the sentences.
struct StoryAcceptance {
  int64_t stories = 0, accepted_stories = 0;
  int64_t sentences = 0, accepted_sentences = 0;
  bool cut = false;            // the last line was left out of the stories
  int64_t accepted_bytes = 0;  // of accepted stories, without newlines
  double accepted_nats = 0;    // of accepted stories
  std::vector<std::string> rejected_stories, rejected_sentences;  // the first few, cut
};
// Works on any bytes. `show` limits each list of rejected texts.
StoryAcceptance accept_stories(std::string_view text, size_t show = 5);

// Stories in a file, one per line.

// Whole stories first, first + 1, ... of a seed, until both minima are reached.
struct StoryOrder {
  uint64_t seed = 0;
  int64_t first = 0;
  int64_t min_stories = 1;
  int64_t min_bytes = 0;  // newlines included
};

struct StoryTotals {
  int64_t stories = 0;
  int64_t bytes = 0;  // newlines included, so also tokens: a byte each, and one end per story
  double nats = 0;    // -log p of this very text, good to 1e-9 relative

  double nats_per_byte() const { return nats / static_cast<double>(bytes - stories); }
  double nats_per_token() const { return nats / static_cast<double>(bytes); }
};

// Writes without committing. `progress` is told the totals after each block of a few hundred KiB.
// Usage error when training stories would run into those for validation.
StoryTotals write_stories(AtomicFile& file, const StoryOrder& order,
                          FunctionRef<void(const StoryTotals&)> progress);

}  // namespace bev
