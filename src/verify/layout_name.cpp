#include "verify/layout_name.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/check.h"
#include "base/integer.h"
#include "config/parse/field.h"
#include "config/parse/value.h"

namespace bev {

namespace {

// A part that is a word with a number behind it.
struct NumberPart {
  std::string_view word;
  int64_t ParallelConfig::* member;
  std::string_view field;  // whose range holds
  std::string_view meaning;
};

// While parts are read and written, `ranks` counts the ranks that share the batch.
constexpr std::array kNumbers{
    NumberPart{"tp", &ParallelConfig::tensor, "parallel.tensor", "N ranks share each matrix"},
    NumberPart{"pp", &ParallelConfig::pipeline, "parallel.pipeline", "N ranks share the layers"},
    NumberPart{"dp", &ParallelConfig::ranks, "parallel.ranks", "N ranks share the batch"},
    NumberPart{"zero", &ParallelConfig::zero, "parallel.zero",
               "0: these have all, 1: they divide the optimizer's state, 2: gradients too, 3: and "
               "parameters"},
    NumberPart{"chunks", &ParallelConfig::chunks, "parallel.chunks", "N stages per pipeline rank"},
    NumberPart{"first", &ParallelConfig::first_layers, "parallel.first_layers",
               "N layers in the first stage"},
    NumberPart{"last", &ParallelConfig::last_layers, "parallel.last_layers",
               "N layers in the last stage"},
    NumberPart{"split", &ParallelConfig::decoder_stage, "parallel.decoder_stage",
               "the decoder of a T5 starts at stage N"},
};
constexpr std::string_view kSequence = "sp", kOne = "one";

// A part that says what is exchanged beside other work.
struct OverlapPart {
  std::string_view word;
  bool gradients, parameters;
};
constexpr std::array kOverlaps{OverlapPart{"overlap", true, true},
                               OverlapPart{"overlap-gradients", true, false},
                               OverlapPart{"overlap-parameters", false, true}};

int64_t ranks_of_a_copy(const ParallelConfig& p) { return p.tensor * p.context * p.pipeline; }

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(".,", begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Which of the parts that exclude each other it is; empty when it is none.
std::string_view read_part(std::string_view part, ParallelConfig& layout) {
  if (part == kSequence) {
    layout.sequence = true;
    return kSequence;
  }
  for (const OverlapPart& overlap : kOverlaps) {
    if (part != overlap.word) continue;
    layout.overlap_gradients = overlap.gradients;
    layout.overlap_parameters = overlap.parameters;
    return kOverlaps.front().word;
  }
  const auto& schedules = EnumNames<ScheduleKind>::names;
  const auto schedule = std::find(schedules.begin(), schedules.end(), part);
  if (schedule != schedules.end()) {
    layout.schedule = static_cast<ScheduleKind>(schedule - schedules.begin());
    return "a schedule";
  }
  for (const NumberPart& number : kNumbers) {
    const std::string_view digits = part.substr(std::min(number.word.size(), part.size()));
    const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    if (!part.starts_with(number.word) || !is_number) continue;
    const Parsed parsed = parse_value(*find_field(number.field), digits);
    BEV_CHECK(parsed.value, Usage, "a layout with {}: {}; legal is {}", part, parsed.why,
              parsed.legal);
    layout.*number.member = std::get<int64_t>(*parsed.value);
    return number.word;
  }
  return {};
}

}  // namespace

std::string layout_parts() {
  std::string text;
  for (const NumberPart& number : kNumbers)
    text += format("{}N ({}), ", number.word, number.meaning);
  return format(
      "{}{} (tokens are cut between tensor regions), {} (gradients are summed and parameters "
      "gathered beside other work; also {} or {}), one of the schedules {}; or {}: one rank",
      text, kSequence, kOverlaps[0].word, kOverlaps[1].word, kOverlaps[2].word,
      fmt::join(EnumNames<ScheduleKind>::names, ", "), kOne);
}

ParallelConfig parse_layout(std::string_view text) {
  ParallelConfig layout;
  if (text.empty() || text == kOne) return layout;
  std::set<std::string_view> seen;
  for (const std::string_view part : parts_of(text)) {
    const std::string_view kind = read_part(part, layout);
    BEV_CHECK(!kind.empty(), Usage,
              "the layout \"{}\" has a part \"{}\" that means nothing; legal are, with dots or "
              "commas between: {}",
              text, part, layout_parts());
    BEV_CHECK(seen.insert(kind).second, Usage, "the layout \"{}\" says twice: {}", text, kind);
  }
  layout.ranks *= ranks_of_a_copy(layout);
  return layout;
}

std::string layout_text(const ParallelConfig& layout) {
  ParallelConfig counted = layout;
  counted.ranks = div_exact(layout.ranks, ranks_of_a_copy(layout));
  std::vector<std::string> parts;
  for (const NumberPart& number : kNumbers) {
    const int64_t value = counted.*number.member;
    if (value != ParallelConfig{}.*number.member)
      parts.push_back(format("{}{}", number.word, value));
    if (number.member == &ParallelConfig::tensor && layout.sequence) parts.emplace_back(kSequence);
  }
  for (const OverlapPart& overlap : kOverlaps) {
    if (layout.overlap_gradients == overlap.gradients &&
        layout.overlap_parameters == overlap.parameters)
      parts.emplace_back(overlap.word);
  }
  if (layout.schedule != ParallelConfig{}.schedule)
    parts.emplace_back(name_of_choice(layout.schedule));
  return parts.empty() ? std::string(kOne) : format("{}", fmt::join(parts, "."));
}

}  // namespace bev
