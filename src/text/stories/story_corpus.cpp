#include "text/stories/story_corpus.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "base/philox.h"

namespace bev {

namespace {

// The rules that yield one sentence each, full stop included.
constexpr std::array<std::string_view, 3> kSentenceRules{"opening", "middle", "ending"};

uint64_t stream_of(uint64_t seed) { return mix_key(seed, "story"); }

// Text up to the mark, which is taken away too; without one, all of it.
std::string_view take_until(std::string_view& text, char mark) {
  const size_t end = text.find(mark);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

void keep_first(std::vector<std::string>& list, std::string_view text, size_t show) {
  constexpr size_t kReadable = 1000;
  if (list.size() < show) list.emplace_back(text.substr(0, kReadable));
}

bool accepts_sentence(std::string_view sentence) {
  return std::any_of(kSentenceRules.begin(), kSentenceRules.end(), [&](std::string_view rule) {
    return story_grammar().accepts(rule, sentence);
  });
}

void judge_sentences(std::string_view line, bool may_be_cut, size_t show, StoryAcceptance& result) {
  while (!line.empty()) {
    const size_t stop = line.find('.');
    if (stop == std::string_view::npos && may_be_cut) return;
    const std::string_view sentence =
        line.substr(0, stop == std::string_view::npos ? stop : stop + 1);
    line.remove_prefix(sentence.size());
    if (line.starts_with(' ')) line.remove_prefix(1);
    ++result.sentences;
    if (accepts_sentence(sentence)) {
      ++result.accepted_sentences;
    } else {
      keep_first(result.rejected_sentences, sentence, show);
    }
  }
}

}  // namespace

// Nothing here begins with a vowel where "a" may stand before it. Short words and large classes
// keep the entropy per byte high; no alternative is rarer than one in 200, so that a few megabytes
// show all of them often. Who the story is about takes long to learn, from far apart in the text:
// few heroes and animals keep the cost of not knowing it small.
std::vector<GrammarRule> story_rules() {
  return {
      {.name = "story", .alternatives = {{1, "<opening> <middle><more>"}}},
      // Memoryless: a reader need not count sentences.
      {.name = "more", .alternatives = {{1, " <next>"}}},
      {.name = "next", .alternatives = {{4, "<middle><more>"}, {1, "<ending>"}}},

      {.name = "opening",
       .alternatives = {{1, "<hero=name> <began> a <adjective> <pet=animal><list>"}}},
      word_rule("began", {{3, "had met"}, {2, "saw got fed"}, {1, "won hid lost"}}),
      {.name = "ending",
       .alternatives = {{1, "So {hero.name} <verb> the {pet.name} for <object><list>"}}},

      {.name = "middle", .alternatives = {{1, "<subject> <action>"}}},
      {.name = "subject",
       .alternatives = {{4, "{hero.He}"},
                        {3, "{hero.name}"},
                        {2, "<time> {hero.he}"},
                        {3, "The {pet.name}"},
                        {4, "<friend>"}}},
      // None of them can be a hero: a name tells at once which it is.
      word_rule("friend", {{1,
                            "Ada Al Ed Gus Hal Ike Jan Kay Lee Lou Mia Ned Pat Ray Rex Rob Roy Sid "
                            "Ted Uma Val Vic Wes Zac Eli Fay Gil Ian Ivy Jed Ken May"}}),
      word_rule("time", {{3, "Then Soon"}, {2, "Next Once Now"}, {1, "Later Today Again"}}),
      {.name = "action",
       .alternatives = {{6, "<verb> <object><list>"}, {1, "<went> <where> <place>."}}},
      // One thing or several: "hay", "hay and a cup", "hay, a cup, two pens and jam".
      {.name = "list", .alternatives = {{4, "."}, {7, ", <object><list>"}, {2, " and <object>."}}},

      {.name = "object",
       .alternatives = {{3, "a <thing>"},
                        {3, "the <thing>"},
                        {2, "{hero.his} <thing>"},
                        {1, "this <thing>"},
                        {1, "that <thing>"},
                        {1, "one <thing>"},
                        {4, "<number> <thing>s"},
                        {12, "<stuff>"}}},
      {.name = "thing", .alternatives = {{1, "<noun>"}, {1, "<adjective> <noun>"}}},
      {.name = "stuff", .alternatives = {{3, "<matter>"}, {2, "<adjective> <matter>"}}},
      {.name = "place",
       .alternatives = {{3, "the <spot>"}, {2, "a <spot>"}, {1, "{hero.his} <spot>"}}},
      {.name = "spot", .alternatives = {{1, "<site>"}, {2, "<adjective> <site>"}}},
      word_rule("where", {{3, "to in"}, {2, "by at"}, {1, "near"}}),
      word_rule("number", {{2, "two six ten"}, {1, "three four five seven nine"}}),

      {.name = "name",
       .forms = {"name", "He", "he", "his"},
       .alternatives = {{1, "Tom|He|he|his"},
                        {1, "Max|He|he|his"},
                        {1, "Ann|She|she|her"},
                        {1, "Meg|She|she|her"}}},
      {.name = "animal",
       .forms = {"name"},
       .alternatives = {{1, "dog"}, {1, "cat"}, {1, "pig"}, {1, "fox"}}},

      word_rule("verb", {{3, "ate cut got had hid hit met saw sold took"},
                         {2,
                          "bit dug fed led lit set won bent drew felt held kept left lost made "
                          "read sent shut used wore"},
                         {2,
                          "blew hung knew laid lent rode shook spun tore wove liked fixed dyed "
                          "moved broke found"}}),
      word_rule("went", {{2, "ran sat went"}, {1, "lay swam sang slept stood crept danced"}}),
      word_rule("noun",
                {{2,
                  "bag bat bed bin bun cab can cap car cup fan gem hat jar jug key lid log "
                  "map mat mop mug net nut pan pen pie pin pot rug saw toy tub van"},
                 {1,
                  "bib bow bud cob cog cot dam fig fin flag hub jet kit pad pea pit pod rag rib "
                  "rod tie top vat web wig yam ball bell bike boat book boot coin cork desk doll "
                  "door drum fork gift harp hook horn lamp lock mask nail pipe ring robe "
                  "sack sail seed shoe sled sock vase vest"}}),
      word_rule("adjective",
                {{2, "bad big dim dry fat hot mad new raw red sad shy sly tan wet"},
                 {1,
                  "bold blue calm cold cool cute dark deep dull fair fast flat full good gray "
                  "grim hard huge keen kind late lazy lean long loud mild neat nice pale plain "
                  "poor pure rare rich ripe rude safe soft slow slim sore sour tall tame thin "
                  "tidy tiny vast warm weak wild wise worn"}}),
      word_rule("matter",
                {{2, "hay jam ham tea tar wax mud gum ink oil ice rye fur"},
                 {1,
                  "silk wool corn rice milk soup cake meat salt sand soap wood coal iron glue "
                  "wine beer fish lace clay dust foam gold jade kale lime malt mint pork snow "
                  "yarn zinc"}}),
      word_rule("site", {{2, "bay den hut zoo barn farm hill lake mill park"},
                         {1,
                          "camp cave cove dock fort gate glen hall lane path pond pool port road "
                          "shop town yard"}}),
  };
}

const Grammar& story_grammar() {
  static const Grammar grammar(story_rules());
  return grammar;
}

Grammar::Text scored_story(uint64_t seed, int64_t index) {
  BEV_CHECK(index >= 0, Internal, "story {} is asked for", index);
  return story_grammar().draw(stream_of(seed), static_cast<uint64_t>(index));
}

std::string story(uint64_t seed, int64_t index) { return scored_story(seed, index).text; }

StoryStatistics story_statistics() {
  const Grammar::Expectation mean = story_grammar().expectation();
  return {.nats_per_story = mean.nats,
          .bytes_per_story = mean.bytes,
          .nats_per_byte = mean.nats / mean.bytes,
          .nats_per_token = mean.nats / (mean.bytes + 1)};
}

std::optional<double> nats_of(std::string_view story) { return story_grammar().nats_of(story); }

StoryAcceptance accept_stories(std::string_view text, size_t show) {
  StoryAcceptance result;
  while (!text.empty()) {
    const bool ended = text.find('\n') != std::string_view::npos;
    const std::string_view line = take_until(text, '\n');
    if (line.empty()) continue;
    judge_sentences(line, !ended, show, result);
    const std::optional<double> nats = nats_of(line);
    if (nats) {
      ++result.stories;
      ++result.accepted_stories;
      result.accepted_nats += *nats;
      result.accepted_bytes += static_cast<int64_t>(line.size());
    } else if (ended) {
      ++result.stories;
      keep_first(result.rejected_stories, line, show);
    } else {
      result.cut = true;
    }
  }
  return result;
}

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
