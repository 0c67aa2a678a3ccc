#include "plan/plan_report.h"

#include "plan/layout_report.h"
#include "plan/report_row.h"

namespace bev {

namespace {

std::string memory_rows(const std::vector<MemoryUse>& uses, double whole) {
  std::string text;
  for (const MemoryUse& use : uses) {
    const double bytes = static_cast<double>(use.bytes);
    text += report_row(use.purpose, with_commas(static_cast<int64_t>(use.bytes)),
                       format("{:>10}  {:4.1f} %", as_bytes(bytes), 100 * bytes / whole));
  }
  return text;
}

std::string model_rows(const Plan& p) {
  const ModelShape& m = p.model;
  std::string text = "model\n";
  text += report_row("layers x width", format("{} x {}", m.layers, m.width));
  text += report_row("heads (kv heads) x head size",
                     format("{} ({}) x {}", m.heads, m.kv_heads, m.head_dim));
  text += report_row("MLP inner size", with_commas(m.ffn));
  text += report_row("vocabulary (padded)",
                     format("{} ({})", with_commas(m.vocab), with_commas(m.padded_vocab)));
  text += report_row("positions", with_commas(m.positions));
  text +=
      report_row("device, storage", format("{}, {}", name_of_choice(p.device), name_of(p.dtype)));
  text += "batch\n";
  text += report_row("micro-batch x sequence",
                     format("{} x {}", p.batch.micro_batch, p.batch.sequence));
  text += report_row("global batch", with_commas(p.batch.global_batch),
                     format("{} micro-batches{}, {} tokens per step", p.batch.micros,
                            p.layout.data > 1 ? format(" on each of {} ranks", p.layout.data) : "",
                            with_commas(static_cast<int64_t>(p.tokens_per_step()))));
  if (p.iterations > 0) text += report_row("iterations", with_commas(p.iterations));
  return text;
}

}  // namespace

std::string plan_table(const LayoutPlan& plan) {
  const Plan& p = plan.shown;
  const bool several = p.layout.world() > 1;
  const std::string whose = several ? format(" of rank {}", p.rank) : "";
  std::string text = model_rows(p);
  if (several) text += layout_rows(plan) + stage_rows(plan) + sent_rows(plan);
  text += format("parameters{}\n", whose);
  for (const ModuleCount& module : p.modules) {
    text += report_row(module.name, with_commas(module.elements),
                       module.instances > 1 ? format("{} x", module.instances) : "");
  }
  text += report_row("total", with_commas(p.parameters));
  if (several) text += report_row("of the whole model", with_commas(p.model_parameters));
  text += format("memory{} in bytes\n", whose);
  text += memory_rows(p.memory, static_cast<double>(p.memory_bytes()));
  text += report_row("total", with_commas(static_cast<int64_t>(p.memory_bytes())),
                     format("{:>10}", as_bytes(static_cast<double>(p.memory_bytes()))));
  if (p.checkpoint_bytes > 0)
    text +=
        report_row("each checkpoint on disk", with_commas(static_cast<int64_t>(p.checkpoint_bytes)),
                   format("{:>10}", as_bytes(p.checkpoint_bytes)));
  text += format("activations{} at their peak, of one micro-batch\n", whose);
  text += memory_rows(p.activations, static_cast<double>(p.arenas.keep));
  text += several ? "arithmetic of all ranks\n" : "arithmetic\n";
  text += report_row("model FLOP per token", format("{:.6e}", p.model_flops_per_token),
                     "6 x weights in products + 6 x layers x heads x head size x sequence");
  text += report_row("model FLOP per step",
                     format("{:.6e}", p.model_flops_per_token * p.tokens_per_step()));
  text += report_row("executed FLOP per step", format("{:.6e}", plan.flops()),
                     "recomputation included");
  return text;
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
