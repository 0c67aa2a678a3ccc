#include "plan/layout_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "plan/report_row.h"

namespace bev {

namespace {

constexpr std::string_view kRest = "rest";

struct NamedAxis {
  Axis axis;
  std::string_view name;
};
constexpr std::array<NamedAxis, 4> kAxes{{{Axis::Tensor, "tensor"},
                                          {Axis::Context, "context"},
                                          {Axis::Data, "data"},
                                          {Axis::Pipeline, "pipeline"}}};

std::string layers_in_words(const StageRange& range) {
  const int64_t last = range.first + range.count - 1;
  if (range.count == 1) return format("layer {}", last);
  return format("layers {} to {}", range.first, last);
}

std::string place_in_words(const LayoutPlan& plan) {
  const Grid grid = plan.shown.layout.grid();
  std::string place, held;
  for (const auto& [axis, name] : kAxes) {
    if (grid.size(axis) == 1) continue;
    place += format("{}{} {} of {}", place.empty() ? "" : ", ", name,
                    grid.coordinate(plan.shown.rank, axis), grid.size(axis));
  }
  for (const StageRange& range : plan.held) {
    held +=
        format("{}{}{}{}", held.empty() ? "" : ", ", range.has_embedding ? "the embedding, " : "",
               layers_in_words(range), range.has_head ? ", the head" : "");
  }
  return format("rank {} ({}) holds {}", plan.shown.rank, place, held);
}

size_t bytes_for(const RankPlan& rank, std::string_view purpose) {
  for (const MemoryUse& use : rank.memory)
    if (use.purpose == purpose) return use.bytes;
  return 0;
}

// The purposes that get a column.
std::vector<std::string> main_purposes(const LayoutPlan& plan) {
  std::vector<std::string> purposes;
  for (const RankPlan& rank : plan.ranks) {
    for (const auto& [purpose, bytes] : rank.memory) {
      const bool is_known = std::find(purposes.begin(), purposes.end(), purpose) != purposes.end();
      if (!is_known && bytes >= rank.memory_bytes() / 100) purposes.push_back(purpose);
    }
  }
  return purposes;
}

std::string bytes_cell(size_t bytes, size_t width) {
  return format("  {:>{}}", as_bytes(static_cast<double>(bytes)), width);
}

size_t width_of(std::string_view purpose) { return std::max<size_t>(10, purpose.size()); }

std::string_view mark_of(const RankPlan& rank, const LayoutPlan& plan) {
  const size_t most = plan.largest().memory_bytes(), least = plan.smallest().memory_bytes();
  if (rank.memory_bytes() == most) return most == least ? "" : "  most";
  return rank.memory_bytes() == least ? "  least" : "";
}

std::string sent_row(const std::string& name, double shown, double most) {
  if (most == 0) return {};
  return report_row(name, with_commas(std::llround(shown)),
                    format("{:>10}  at most {:>10}", as_bytes(shown), as_bytes(most)));
}

Json sent_json(const SentBytes& sent) {
  return {{"tensor", std::llround(sent.tensor)},
          {"data", std::llround(sent.data)},
          {"pipeline", std::llround(sent.pipeline)},
          {"scalars", std::llround(sent.scalars)}};
}

}  // namespace

std::string layout_rows(const LayoutPlan& plan) {
  std::string text = "layout\n";
  text += format("  {}\n", describe(plan.shown.layout));
  text += format("  {}\n", place_in_words(plan));
  if (plan.shown.layout.pipeline > 1)
    text += report_row("schedule", std::string(name_of_choice(plan.schedule)),
                       format("bubble {:.1f} %", 100 * plan.bubble));
  return text;
}

std::string stage_rows(const LayoutPlan& plan) {
  const std::vector<std::string> purposes = main_purposes(plan);
  std::string text = "memory by stage\n";
  text += format("  {:>5}  {:>6}  {:>6}  {:>15}  {:>5}", "stage", "rank", "layers", "parameters",
                 "slots");
  for (const std::string& purpose : purposes)
    text += format("  {:>{}}", purpose, width_of(purpose));
  text += format("  {:>{}}  {:>{}}\n", kRest, width_of(kRest), "total", width_of("total"));
  for (const RankPlan& rank : plan.ranks) {
    text += format("  {:>5}  {:>6}  {:>6}  {:>15}  {:>5}", rank.stage, rank.rank, rank.layers,
                   with_commas(rank.parameters), rank.slots);
    size_t rest = rank.memory_bytes();
    for (const std::string& purpose : purposes) {
      const size_t bytes = bytes_for(rank, purpose);
      rest -= bytes;
      text += bytes_cell(bytes, width_of(purpose));
    }
    text += bytes_cell(rest, width_of(kRest));
    text += bytes_cell(rank.memory_bytes(), width_of("total"));
    text += format("{}\n", mark_of(rank, plan));
  }
  return text;
}

std::string sent_rows(const LayoutPlan& plan) {
  const SentBytes &sent = plan.shown.sent, most = plan.most_sent();
  std::string text =
      format("bytes sent in a step by rank {}, and at most by any\n", plan.shown.rank);
  text += sent_row("to tensor ranks", sent.tensor, most.tensor);
  text += sent_row("to data ranks", sent.data, most.data);
  text += sent_row("to pipeline ranks", sent.pipeline, most.pipeline);
  return text + sent_row("scalars, to several", sent.scalars, most.scalars);
}

void add_layout(const LayoutPlan& plan, Json& json) {
  const ParallelLayout& layout = plan.shown.layout;
  json["layout"] = {{"description", describe(layout)},
                    {"ranks", layout.world()},
                    {"tensor", layout.tensor},
                    {"context", layout.context},
                    {"data", layout.data},
                    {"pipeline", layout.pipeline},
                    {"chunks", layout.chunks},
                    {"sequence", layout.sequence},
                    {"zero", layout.zero},
                    {"schedule", std::string(name_of_choice(plan.schedule))},
                    {"shown_rank", plan.shown.rank}};
  json["bubble"] = plan.bubble;
  json["sent"] = sent_json(plan.shown.sent);
  json["sent"]["rank_max"] = sent_json(plan.most_sent());
  Json ranks = Json::array();
  for (const RankPlan& rank : plan.ranks) {
    Json memory = Json::object();
    for (const MemoryUse& use : rank.memory) memory[use.purpose] = use.bytes;
    ranks.push_back({{"stage", rank.stage},
                     {"rank", rank.rank},
                     {"layers", rank.layers},
                     {"parameters", rank.parameters},
                     {"slots", rank.slots},
                     {"memory_bytes", rank.memory_bytes()},
                     {"memory", std::move(memory)},
                     {"sent", sent_json(rank.sent)}});
  }
  json["ranks"] = std::move(ranks);
}

}  // namespace bev
