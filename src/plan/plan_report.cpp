#include "plan/plan_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/text_table.h"

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

std::string layers_in_words(const StageParts& range) {
  const int64_t last = range.first_block + range.blocks - 1;
  if (range.blocks == 1) return format("layer {}", last);
  return format("layers {} to {}", range.first_block, last);
}

std::string place_in_words(const LayoutPlan& plan) {
  const RankGrid grid = plan.shown.layout.grid();
  std::string place, held;
  for (const auto& [axis, name] : kAxes) {
    if (grid.size(axis) == 1) continue;
    place += format("{}{} {} of {}", place.empty() ? "" : ", ", name,
                    grid.coordinate(plan.shown.rank, axis), grid.size(axis));
  }
  for (const StageParts& range : plan.held) {
    held += format("{}{}{}{}", held.empty() ? "" : ", ", range.is_first ? "the embedding, " : "",
                   layers_in_words(range), range.is_last ? ", the head" : "");
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

std::string_view mark_of(const RankPlan& rank, const LayoutPlan& plan) {
  const size_t most = plan.largest().memory_bytes(), least = plan.smallest().memory_bytes();
  if (rank.memory_bytes() == most) return most == least ? "" : "  most";
  return rank.memory_bytes() == least ? "  least" : "";
}

void sent_row(TextTable& row, std::string_view name, double shown, double most) {
  if (most == 0) return;
  row(name, with_commas(std::llround(shown)),
      format("{:>10}  at most {:>10}", as_bytes(shown), as_bytes(most)));
}

Json sent_json(const CommVolume& sent) {
  return {{"tensor", std::llround(sent.tensor)},
          {"data", std::llround(sent.data)},
          {"pipeline", std::llround(sent.pipeline)},
          {"scalars", std::llround(sent.scalars)}};
}

// The layout, position and content of the shown rank, and the schedule with its bubble.
void layout_rows(TextTable& row, const LayoutPlan& plan) {
  row.text += format("layout\n  {}\n  {}\n", describe(plan.shown.layout), place_in_words(plan));
  if (plan.shown.layout.pipeline > 1)
    row("schedule", name_of_choice(plan.schedule), format("bubble {:.1f} %", 100 * plan.bubble));
}

// A row per pipeline stage: what its ranks hold and allocate, by purpose. Purposes below 1 % of the
// memory of every rank share one column.
std::string stage_rows(const LayoutPlan& plan) {
  const std::vector<std::string> purposes = main_purposes(plan);
  std::vector<std::string> heading{"stage", "rank", "layers", "parameters", "slots"};
  heading.insert(heading.end(), purposes.begin(), purposes.end());
  heading.emplace_back(kRest);
  heading.emplace_back("total");
  std::string layout = "  {:>5}  {:>6}  {:>6}  {:>15}  {:>5}";
  for (size_t i = 5; i < heading.size(); ++i)
    layout += format("  {{:>{}}}", std::max<size_t>(10, heading[i].size()));
  TextTable row(layout + "{}");
  row.text = "memory by stage\n";
  row(heading);
  for (const RankPlan& rank : plan.ranks) {
    std::vector<std::string> cells{format("{}", rank.stage), format("{}", rank.rank),
                                   format("{}", rank.layers), with_commas(rank.parameters),
                                   format("{}", rank.slots)};
    size_t rest = rank.memory_bytes();
    const auto add = [&](size_t bytes) { cells.push_back(as_bytes(static_cast<double>(bytes))); };
    for (const std::string& purpose : purposes) {
      const size_t bytes = bytes_for(rank, purpose);
      rest -= bytes;
      add(bytes);
    }
    add(rest);
    add(rank.memory_bytes());
    cells.emplace_back(mark_of(rank, plan));
    row(cells);
  }
  return row.text;
}

// Bytes that the shown rank sends in a step, by axis, and the maximum over all ranks; axes without
// traffic are left out.
void sent_rows(TextTable& row, const LayoutPlan& plan) {
  const CommVolume &sent = plan.shown.sent, most = plan.most_sent();
  row.text += format("bytes sent in a step by rank {}, and at most by any\n", plan.shown.rank);
  sent_row(row, "to tensor ranks", sent.tensor, most.tensor);
  sent_row(row, "to data ranks", sent.data, most.data);
  sent_row(row, "to pipeline ranks", sent.pipeline, most.pipeline);
  sent_row(row, "scalars, to several", sent.scalars, most.scalars);
}

// The keys "layout", "ranks", "bubble" and "sent".
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

void memory_rows(TextTable& row, const std::vector<MemoryUse>& uses, double whole) {
  for (const MemoryUse& use : uses) {
    const double bytes = static_cast<double>(use.bytes);
    row(use.purpose, with_commas(static_cast<int64_t>(use.bytes)),
        format("{:>10}  {:4.1f} %", as_bytes(bytes), 100 * bytes / whole));
  }
}

void model_rows(TextTable& row, const Plan& p) {
  const ModelShape& m = p.model;
  row.text += "model\n";
  row("layers x width", format("{} x {}", both_sides(m.layers, m.decoder_layers), m.width));
  row("heads (kv heads) x head size", format("{} ({}) x {}", m.heads, m.kv_heads, m.head_dim));
  row("MLP inner size", with_commas(m.ffn));
  row("vocabulary (padded)", format("{} ({})", with_commas(m.vocab), with_commas(m.padded_vocab)));
  row("positions", with_commas(m.positions));
  row("device, storage", format("{}, {}", name_of_choice(p.device), name_of(p.dtype)));
  row.text += "batch\n";
  row("micro-batch x sequence", format("{} x {}", p.batch.micro_batch,
                                       both_sides(p.batch.sequence, p.batch.second_sequence)));
  row("global batch", with_commas(p.batch.global_batch),
      format("{} micro-batches{}, {} tokens per step", p.batch.micros,
             p.layout.data > 1 ? format(" on each of {} ranks", p.layout.data) : "",
             with_commas(static_cast<int64_t>(p.tokens_per_step()))));
  if (p.iterations > 0) row("iterations", with_commas(p.iterations));
}

}  // namespace

std::string plan_table(const LayoutPlan& plan) {
  const Plan& p = plan.shown;
  const bool several = p.layout.world() > 1;
  const std::string whose = several ? format(" of rank {}", p.rank) : "";
  size_t width = 34;
  for (const ModuleCount& module : p.modules) width = std::max(width, module.name.size());
  TextTable row("  {:<*} {:>24}  {}", width);
  model_rows(row, p);
  if (several) {
    layout_rows(row, plan);
    row.text += stage_rows(plan);
    sent_rows(row, plan);
  }
  row.text += format("parameters{}\n", whose);
  for (const ModuleCount& module : p.modules) {
    if (module.instances > 1) {
      row(module.name, with_commas(module.elements), format("{} x", module.instances));
    } else {
      row(module.name, with_commas(module.elements));
    }
  }
  row("total", with_commas(p.parameters));
  if (several) row("of the whole model", with_commas(p.model_parameters));
  row.text += format("memory{} in bytes\n", whose);
  memory_rows(row, p.memory, static_cast<double>(p.memory_bytes()));
  row("total", with_commas(static_cast<int64_t>(p.memory_bytes())),
      format("{:>10}", as_bytes(static_cast<double>(p.memory_bytes()))));
  if (p.checkpoint_bytes > 0)
    row("each checkpoint on disk", with_commas(static_cast<int64_t>(p.checkpoint_bytes)),
        format("{:>10}", as_bytes(p.checkpoint_bytes)));
  row.text += format("activations{} at their peak, of one micro-batch\n", whose);
  memory_rows(row, p.activations, static_cast<double>(p.arenas.keep));
  row.text += several ? "arithmetic of all ranks\n" : "arithmetic\n";
  row("model FLOP per token", format("{:.6e}", p.model_flops_per_token),
      "6 x weights in products + 6 x layers x heads x head size x sequence");
  row("model FLOP per step", format("{:.6e}", p.model_flops_per_token * p.tokens_per_step()));
  row("executed FLOP per step", format("{:.6e}", plan.flops()), "recomputation included");
  return row.text;
}

std::string plan_json(const LayoutPlan& plan) {
  const Plan& p = plan.shown;
  const auto as_object = [](const std::vector<MemoryUse>& uses) {
    Json object = Json::object();
    for (const MemoryUse& use : uses) object[use.purpose] = use.bytes;
    return object;
  };
  Json modules = Json::array();
  for (const ModuleCount& m : p.modules) {
    modules.push_back({{"name", m.name}, {"instances", m.instances}, {"elements", m.elements}});
  }
  Json json = {{"model",
                {{"layers", p.model.layers},
                 {"width", p.model.width},
                 {"heads", p.model.heads},
                 {"kv_heads", p.model.kv_heads},
                 {"head_dim", p.model.head_dim},
                 {"ffn", p.model.ffn},
                 {"vocab", p.model.vocab},
                 {"padded_vocab", p.model.padded_vocab},
                 {"positions", p.model.positions}}},
               {"device",
                {{"kind", std::string(name_of_choice(p.device))},
                 {"dtype", std::string(name_of(p.dtype))},
                 {"threads", p.threads}}},
               {"parameters",
                {{"total", p.model_parameters},
                 {"rank_max", plan.most_parameters()},
                 {"by_module", modules}}},
               {"memory",
                {{"rank_max_bytes", plan.largest().memory_bytes()},
                 {"by_purpose", as_object(p.memory)},
                 {"activations_at_peak", as_object(p.activations)},
                 {"scratch_at_peak", as_object(p.scratch)}}},
               {"flops",
                {{"per_token", p.model_flops_per_token},
                 {"per_step", p.model_flops_per_token * p.tokens_per_step()},
                 {"executed_per_step", plan.flops()}}},
               {"train",
                {{"iterations", p.iterations},
                 {"micro_batches", p.batch.micros},
                 {"global_batch", p.batch.global_batch},
                 {"tokens_per_step", p.tokens_per_step()}}}};
  if (p.checkpoint_bytes > 0) json["checkpoint_bytes"] = p.checkpoint_bytes;
  add_layout(plan, json);
  return json.dump(2);
}

}  // namespace bev
