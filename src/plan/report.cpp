#include "plan/report.h"

#include "base/format.h"
#include "base/json.h"

namespace bev {

namespace {

std::string row(const std::string& name, const std::string& value, const std::string& note = "") {
  return note.empty() ? format("  {:<34} {:>24}\n", name, value)
                      : format("  {:<34} {:>24}  {}\n", name, value, note);
}

std::string memory_rows(const std::vector<MemoryUse>& uses, double whole) {
  std::string text;
  for (const MemoryUse& use : uses) {
    const double bytes = static_cast<double>(use.bytes);
    text += row(use.purpose, with_commas(static_cast<int64_t>(use.bytes)),
                format("{:>10}  {:4.1f} %", as_bytes(bytes), 100 * bytes / whole));
  }
  return text;
}

std::string model_rows(const Plan& p) {
  const ModelShape& m = p.model;
  std::string text = "model\n";
  text += row("layers x width", format("{} x {}", m.layers, m.width));
  text +=
      row("heads (kv heads) x head size", format("{} ({}) x {}", m.heads, m.kv_heads, m.head_dim));
  text += row("MLP inner size", with_commas(m.ffn));
  text += row("vocabulary (padded)",
              format("{} ({})", with_commas(m.vocab), with_commas(m.padded_vocab)));
  text += row("positions", with_commas(m.positions));
  text += row("device, storage", format("{}, {}", name_of_choice(p.device), name_of(p.dtype)));
  text += "batch\n";
  text += row("micro-batch x sequence", format("{} x {}", p.batch.micro_batch, p.batch.sequence));
  text += row("global batch", with_commas(p.batch.global_batch),
              format("{} micro-batches, {} tokens per step", p.batch.micros,
                     with_commas(static_cast<int64_t>(p.tokens_per_step()))));
  if (p.iterations > 0) text += row("iterations", with_commas(p.iterations));
  return text;
}

}  // namespace

std::string plan_table(const Plan& p) {
  std::string text = model_rows(p);
  text += "parameters\n";
  for (const ModuleCount& module : p.modules) {
    text += row(module.name, with_commas(module.elements),
                module.instances > 1 ? format("{} x", module.instances) : "");
  }
  text += row("total", with_commas(p.parameters));
  text += "memory in bytes\n";
  text += memory_rows(p.memory, static_cast<double>(p.memory_bytes()));
  text += row("total", with_commas(static_cast<int64_t>(p.memory_bytes())),
              format("{:>10}", as_bytes(static_cast<double>(p.memory_bytes()))));
  text += "activations at their peak\n";
  text += memory_rows(p.activations, static_cast<double>(p.arenas.keep));
  text += "arithmetic\n";
  text += row("model FLOP per token", format("{:.6e}", p.model_flops_per_token),
              "6 x weights in products + 6 x layers x heads x head size x sequence");
  text +=
      row("model FLOP per step", format("{:.6e}", p.model_flops_per_token * p.tokens_per_step()));
  text += row("executed FLOP per step", format("{:.6e}", p.step.flops), "recomputation included");
  return text;
}

std::string plan_json(const Plan& p) {
  const auto as_object = [](const std::vector<MemoryUse>& uses) {
    Json object = Json::object();
    for (const MemoryUse& use : uses) object[use.purpose] = use.bytes;
    return object;
  };
  Json modules = Json::array();
  for (const ModuleCount& m : p.modules) {
    modules.push_back({{"name", m.name}, {"instances", m.instances}, {"elements", m.elements}});
  }
  const Json json = {
      {"model",
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
      {"parameters", {{"total", p.parameters}, {"rank_max", p.parameters}, {"by_module", modules}}},
      {"memory",
       {{"rank_max_bytes", p.memory_bytes()},
        {"by_purpose", as_object(p.memory)},
        {"activations_at_peak", as_object(p.activations)},
        {"scratch_at_peak", as_object(p.scratch)}}},
      {"flops",
       {{"per_token", p.model_flops_per_token},
        {"per_step", p.model_flops_per_token * p.tokens_per_step()},
        {"executed_per_step", p.step.flops}}},
      {"train",
       {{"iterations", p.iterations},
        {"micro_batches", p.batch.micros},
        {"global_batch", p.batch.global_batch},
        {"tokens_per_step", p.tokens_per_step()}}}};
  return json.dump(2);
}

}  // namespace bev
