// bevatron corpus: writes stories whose entropy is known, or says how much of a text the grammar of
// these stories accepts.
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "app/cli/cli_flags.h"
#include "app/cli/progress_line.h"
#include "app/cli/stdio_files.h"
#include "app/cli/verbs.h"
#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "text/stories/story_corpus.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 8> kCorpusFlags{{
    {"--output", "FILE", "write stories for training to this file, one per line"},
    {"--bytes", "SIZE",
     "whole stories until the file has at least this many bytes: 300K, 2M, 64Mi; default 2M"},
    {"--stories", "N", "this many stories instead"},
    {"--seed", "N", "other stories for another number; default 1234"},
    {"--valid", "FILE", "also write stories for validation, none of which is in the first file"},
    {"--valid-bytes", "SIZE", "at least this many bytes of them; default 100K"},
    {"--score", "FILE",
     "write nothing; say how many stories and sentences of this text ('-': stdin) the grammar "
     "accepts, and -log p of the accepted stories"},
    {"--json", "", "print JSON with stable keys instead of tables"},
}};

constexpr VerbSpec kCorpusVerb{
    .name = "corpus",
    .summary =
        "Writes small stories from a random grammar whose entropy is known exactly: no model can "
        "have a smaller loss than what is printed. One story is one document and one line. "
        "Exit codes: 2 wrong usage, 3 a file cannot be read or written; then no file is left "
        "behind half written.",
    .flags = kCorpusFlags};

constexpr int64_t kMaxBytes = int64_t{1} << 46;

struct WrittenFile {
  std::string path;
  StoryTotals totals;
};

double bits(double nats) { return nats / std::log(2.0); }

Json grammar_json() {
  const StoryStatistics s = story_statistics();
  return {{"nats_per_story", s.nats_per_story}, {"bytes_per_story", s.bytes_per_story},
          {"nats_per_byte", s.nats_per_byte},   {"bits_per_byte", bits(s.nats_per_byte)},
          {"nats_per_token", s.nats_per_token}, {"words", story_grammar().vocabulary().size()}};
}

std::string grammar_table() {
  const StoryStatistics s = story_statistics();
  return format(
      "the grammar, exactly: {:.6f} nats/byte ({:.6f} bits/byte), {:.6f} nats/token\n"
      "  a story has {:.2f} nats and {:.2f} bytes on average\n"
      "  a token is a byte of a story, or the end of one\n",
      s.nats_per_byte, bits(s.nats_per_byte), s.nats_per_token, s.nats_per_story,
      s.bytes_per_story);
}

// --- Writing. ---

void require_writable_name(const std::string& path) {
  BEV_CHECK(path != "-", Usage,
            "stories go to a file, since stdout has the statistics; legal: --output FILE");
  // The file is replaced as a whole: what is no file (a directory, /dev/null) must not be.
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  BEV_CHECK(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status), Data,
            "cannot write {}: it is {}; legal: the name of a file", path,
            std::filesystem::is_directory(status) ? "a directory" : "not a regular file");
}

void require_two_files(const std::string& output, const std::string& valid) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto place = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path), ignored);
  };
  const bool same = place(output) == place(valid);
  BEV_CHECK(!same, Usage, "--output and --valid name the same file, {}; legal: two names", output);
}

StoryTotals write_with_progress(AtomicFile& file, const std::string& path,
                                const StoryOrder& order) {
  const double expected =
      std::max(static_cast<double>(order.min_bytes),
               static_cast<double>(order.min_stories) * (story_statistics().bytes_per_story + 1));
  ProgressLine progress(format("writing {}", path), static_cast<int64_t>(expected), "bytes");
  return write_stories(file, order,
                       [&](const StoryTotals& totals) { progress.update(totals.bytes); });
}

std::vector<WrittenFile> write_files(const FlagValues& flags) {
  flags.require_not_both("--bytes", "--stories");
  flags.require_with("--valid-bytes", "--valid");
  const std::string output = flags.path("--output"), valid = flags.path("--valid");
  require_writable_name(output);
  if (!valid.empty()) {
    require_writable_name(valid);
    require_two_files(output, valid);
  }
  const StoryOrder training{
      .seed = static_cast<uint64_t>(flags.integer("--seed", 1234, 0, INT64_MAX)),
      .first = 0,
      .min_stories = flags.integer("--stories", 1, 1, kFirstValidationStory),
      .min_bytes = flags.has("--stories") ? 0 : flags.size("--bytes", 2'000'000, 1, kMaxBytes)};
  const StoryOrder validation{.seed = training.seed,
                              .first = kFirstValidationStory,
                              .min_stories = 1,
                              .min_bytes = flags.size("--valid-bytes", 100'000, 1, kMaxBytes)};
  // Neither file appears before both are written.
  AtomicFile first(output);
  std::optional<AtomicFile> second;
  if (!valid.empty()) second.emplace(valid);
  std::vector<WrittenFile> written;
  written.push_back({output, write_with_progress(first, output, training)});
  if (second) written.push_back({valid, write_with_progress(*second, valid, validation)});
  first.commit();
  if (second) second->commit();
  return written;
}

int write(const FlagValues& flags) {
  const std::vector<WrittenFile> written = write_files(flags);
  if (flags.has("--json")) {
    Json files = Json::array();
    for (const WrittenFile& file : written)
      files.push_back({{"path", file.path},
                       {"stories", file.totals.stories},
                       {"bytes", file.totals.bytes},
                       {"nats", file.totals.nats},
                       {"nats_per_byte", file.totals.nats_per_byte()},
                       {"nats_per_token", file.totals.nats_per_token()}});
    fmt::print("{}\n", Json{{"grammar", grammar_json()}, {"files", files}}.dump(2));
    return 0;
  }
  for (const WrittenFile& file : written) {
    const StoryTotals& t = file.totals;
    fmt::print("wrote {}: {} stories, {} bytes with newlines\n", file.path, with_commas(t.stories),
               with_commas(t.bytes));
    fmt::print("  -log p of this text: {:.6f} nats/byte ({:.6f} bits/byte), {:.6f} nats/token\n",
               t.nats_per_byte(), bits(t.nats_per_byte()), t.nats_per_token());
  }
  fmt::print("{}", grammar_table());
  return 0;
}

// --- Scoring. ---

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void print_rejected(std::string_view what, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  fmt::print("the first rejected {}:\n", what);
  for (const std::string& text : texts) fmt::print("  {}\n", in_quotes(text));
}

void print_acceptance(const std::string& name, const StoryAcceptance& a) {
  fmt::print(
      "{}: the grammar accepts {} of {} stories ({:.2f} %) and {} of {} sentences ({:.2f} %)\n",
      name, with_commas(a.accepted_stories), with_commas(a.stories),
      percent(a.accepted_stories, a.stories), with_commas(a.accepted_sentences),
      with_commas(a.sentences), percent(a.accepted_sentences, a.sentences));
  if (a.cut) fmt::print("  the last line is cut; it does not count as a story\n");
  if (a.accepted_stories > 0) {
    const auto bytes = static_cast<double>(a.accepted_bytes);
    const double per_byte = a.accepted_nats / bytes;
    fmt::print("  -log p of {}: {:.6f} nats/byte ({:.6f} bits/byte), {:.6f} nats/token\n",
               a.accepted_stories == a.stories ? "this text" : "the accepted stories", per_byte,
               bits(per_byte), a.accepted_nats / (bytes + static_cast<double>(a.accepted_stories)));
  }
  print_rejected("stories", a.rejected_stories);
  print_rejected("sentences", a.rejected_sentences);
  fmt::print("{}", grammar_table());
}

Json acceptance_json(const std::string& name, const StoryAcceptance& a) {
  Json json{{"path", name},
            {"stories", a.stories},
            {"accepted_stories", a.accepted_stories},
            {"sentences", a.sentences},
            {"accepted_sentences", a.accepted_sentences},
            {"last_line_cut", a.cut},
            {"accepted_bytes", a.accepted_bytes},
            {"accepted_nats", a.accepted_nats},
            {"rejected_stories", a.rejected_stories},
            {"rejected_sentences", a.rejected_sentences}};
  if (a.accepted_stories > 0) {
    json["nats_per_byte"] = a.accepted_nats / static_cast<double>(a.accepted_bytes);
    json["nats_per_token"] =
        a.accepted_nats / static_cast<double>(a.accepted_bytes + a.accepted_stories);
  }
  return json;
}

int score(const FlagValues& flags) {
  for (const std::string_view other :
       {"--output", "--bytes", "--stories", "--seed", "--valid", "--valid-bytes"})
    flags.require_not_both("--score", other);
  const std::string path = flags.path("--score");
  const WholeInput input(path);
  const std::string& name = input.name();
  const std::string_view text = input.text();
  BEV_CHECK(!text.empty(), Data, "{} is empty; legal: stories, one per line", name);
  const StoryAcceptance accepted = accept_stories(text);
  if (flags.has("--json")) {
    // Rejected texts can hold any bytes; what is not UTF-8 is replaced.
    const Json json{{"grammar", grammar_json()}, {"text", acceptance_json(name, accepted)}};
    fmt::print("{}\n", json.dump(2, ' ', true, Json::error_handler_t::replace));
  } else {
    print_acceptance(name, accepted);
  }
  return 0;
}

}  // namespace

int corpus(std::span<const std::string> args) {
  const auto flags = flags_for(kCorpusVerb, args);
  if (!flags) return 0;
  if (flags->has("--score")) return score(*flags);
  BEV_CHECK(flags->has("--output"), Usage,
            "corpus: say what to do: `--output FILE` writes stories, `--score FILE` judges a text");
  return write(*flags);
}

}  // namespace bev::app
