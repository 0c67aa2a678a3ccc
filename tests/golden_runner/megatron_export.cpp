#include "golden_runner/megatron_export.h"

#include <algorithm>
#include <fstream>

#include "checkpoint/safetensors.h"

namespace bev::golden {

namespace fs = std::filesystem;

namespace {

// Puts tensors under the names of a checkpoint next to a megatron.json, as tools/megatron_export.py
// does.
void write_export(const fs::path& tensors, const Json& shapes, bool has_fused_gelu,
                  const std::string& prefix, const fs::path& to) {
  fs::create_directories(to);
  const SafetensorsReader reader(tensors);
  std::vector<TensorToWrite> list;
  for (const StoredTensor& each : reader.tensors())
    if (each.name.starts_with(prefix))
      list.push_back({"model." + each.name.substr(prefix.size()), *each.dtype, each.shape});
  write_safetensors(to / "mp_rank_00.safetensors", list,
                    [&](const TensorToWrite& out, std::span<std::byte> bytes) {
                      const auto from = reader.bytes(reader.at(prefix + out.name.substr(6)));
                      std::copy(from.begin(), from.end(), bytes.begin());
                    });
  // Those of a T5's encoder have another name, and a sample has no single length.
  const Json& layers = shapes.at(shapes.contains("layers") ? "layers" : "encoder_layers");
  const Json json{
      {"format", 1},
      {"args",
       {{"num_layers", layers},
        {"decoder_num_layers", shapes.value("decoder_layers", layers)},
        {"hidden_size", shapes.at("hidden")},
        {"num_attention_heads", shapes.at("heads")},
        {"kv_channels", shapes.at("kv_channels")},
        {"ffn_hidden_size", shapes.at("ffn")},
        {"padded_vocab_size", shapes.at("vocab")},
        {"max_position_embeddings", shapes.at(shapes.contains("positions") ? "positions" : "seq")},
        {"norm_epsilon", shapes.value("eps", 1e-5)},
        {"bias_gelu_fusion", has_fused_gelu}}},
      {"tensor", 1},
      {"pipeline", 1},
      {"checkpoint_version", 3.0},
      {"shards", {{{"file", "mp_rank_00.safetensors"}, {"tensor", 0}, {"pipeline", 0}}}}};
  std::ofstream(to / "megatron.json") << json.dump();
}

}  // namespace

ExportedTensors::ExportedTensors(const Json& shapes, const fs::path& tensors, bool has_fused_gelu,
                                 const std::string& prefix)
    : model([&] {
        write_export(tensors, shapes, has_fused_gelu, prefix, folder.path());
        return read_megatron_model(folder.path());
      }()),
      weights(folder.path(), model) {}

}  // namespace bev::golden
