#include "convert/huggingface/huggingface.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "checkpoint/safetensors.h"
#include "convert/huggingface/huggingface_names.h"
#include "model/family/family.h"
#include "model/stage.h"
#include "ops/make_device.h"
#include "support/expect_error.h"
#include "support/small_run.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryDirectory;

// The parameters of a model with random values everywhere, norms and biases included.
struct Model {
  Model(const Config& source, DType dtype, uint64_t seed, const ParallelLayout& layout = {},
        int rank = 0)
      : config(source),
        device(make_device(DeviceKind::Reference, 1)),
        spec(model_spec(config)),
        params(*device, layout, rank, dtype),
        stage(params, spec, {0, spec.parts.size()}) {
    params.allocate();
    params.initialize(seed);
    for (Param* param : params.all()) {
      if (param->spec.shape.rank() > 1) continue;
      for (int64_t i = 0; i < param->value.shape.elements(); ++i) {
        set(*param, i,
            0.25 + 0.0625 * static_cast<double>((i * 5 + static_cast<int64_t>(seed)) % 11));
      }
    }
  }

  void set(Param& param, int64_t index, double value) {
    std::byte* at = param.value.data + static_cast<size_t>(index) * size_of(param.value.dtype);
    convert_elements(std::as_bytes(std::span(&value, 1)), DType::f64,
                     {at, size_of(param.value.dtype)}, param.value.dtype);
  }
  std::vector<double> values(const std::string& name) {
    return test::values_of(params.find(name)->value);
  }

  const Config config;
  std::unique_ptr<Device> device;
  ModelSpec spec;
  ParamStore params;
  Stage stage;
};

std::vector<test::TinyModel> exported_families() {
  std::vector<test::TinyModel> all;
  const auto add = [&](const char* name, Config config, auto change) {
    change(config.model);
    all.push_back({name, config});
  };
  add("gpt2", test::tiny_gpt(), [](ModelConfig&) {});
  add("gpt2_untied", test::tiny_gpt(), [](ModelConfig& m) { m.tied = false; });
  add("llama", test::tiny_llama(), [](ModelConfig&) {});
  add("llama_tied_biased", test::tiny_llama(), [](ModelConfig& m) {
    m.tied = true;
    m.bias = BiasKind::All;
  });
  add("mistral", test::tiny_llama(), [](ModelConfig& m) { m.window = 3; });
  add("qwen2", test::tiny_llama(), [](ModelConfig& m) { m.bias = BiasKind::Qkv; });
  add("qwen3", test::tiny_llama(), [](ModelConfig& m) {
    m.qk_norm = true;
    m.head_dim = 6;
  });
  add("t5_1_0", test::tiny_huggingface_t5(), [](ModelConfig& m) { m.scale_head_input = true; });
  add("t5_1_1", test::tiny_huggingface_t5(), [](ModelConfig& m) {
    m.tied = false;
    m.activation = Activation::GeGluTanh;
    m.ffn = 20;
  });
  return all;
}

// Fails when a parameter is not written, is written under the name of another, or is turned in one
// direction only; also when a write depends on anything but the values.
TEST(HuggingFace, EveryFamilyComesBackBitForBit) {
  for (const auto& [name, config] : exported_families()) {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      SCOPED_TRACE(name);
      const TemporaryDirectory dir;
      Model saved(config, dtype, 1), loaded(config, dtype, 2);
      ASSERT_FALSE(test::same_bits(saved.params, loaded.params, &Param::value));
      save_huggingface(dir / "a", config, saved.params);
      load_huggingface(dir / "a", loaded.params);
      EXPECT_TRUE(test::same_bits(saved.params, loaded.params, &Param::value));
      save_huggingface(dir / "b", config, loaded.params);
      for (const char* file : {"model.safetensors", "config.json"}) {
        EXPECT_EQ(read_text(dir.path() / "a" / file), read_text(dir.path() / "b" / file));
      }
    }
  }
}

std::vector<double> stored(const fs::path& dir, const std::string& name, const Shape& shape) {
  const SafetensorsReader reader(dir / "model.safetensors");
  EXPECT_EQ(to_string(reader.at(name).shape), to_string(shape));
  return reader.read_f64(reader.at(name));
}

// Fails when GPT-2's matrices are not turned (in both directions: the round trip would not see it)
// or q, k and v change places.
TEST(HuggingFace, Gpt2MatricesAreStoredInByOut) {
  const TemporaryDirectory dir;
  Model model(test::tiny_gpt(), DType::f64, 3);
  save_huggingface(dir / "m", model.config, model.params);
  for (const auto& [ours, theirs, out, in] :
       {std::tuple("layers.1.attention.qkv.weight", "transformer.h.1.attn.c_attn.weight", 48, 16),
        std::tuple("layers.0.attention.out.weight", "transformer.h.0.attn.c_proj.weight", 16, 16),
        std::tuple("layers.0.mlp.up.weight", "transformer.h.0.mlp.c_fc.weight", 64, 16),
        std::tuple("layers.1.mlp.down.weight", "transformer.h.1.mlp.c_proj.weight", 16, 64)}) {
    const std::vector<double> a = model.values(ours);
    const std::vector<double> b = stored(dir / "m", theirs, {in, out});
    for (size_t row = 0; row < static_cast<size_t>(out); ++row) {
      for (size_t column = 0; column < static_cast<size_t>(in); ++column) {
        ASSERT_EQ(a[row * static_cast<size_t>(in) + column],
                  b[column * static_cast<size_t>(out) + row]);
      }
    }
  }
  EXPECT_EQ(stored(dir / "m", "transformer.h.0.attn.c_attn.bias", {48}),
            model.values("layers.0.attention.qkv.bias"));
  EXPECT_EQ(stored(dir / "m", "transformer.wpe.weight", {9, 16}),
            model.values("embedding.positions.weight"));
  EXPECT_EQ(stored(dir / "m", "transformer.ln_f.bias", {16}), model.values("final_norm.bias"));
}

// Fails when the parts of a fused matrix are cut at the wrong row or change places.
TEST(HuggingFace, LlamaPartsAreRowsOfTheFusedMatrix) {
  const TemporaryDirectory dir;
  Model model(test::tiny_llama(), DType::f64, 3);  // 4 heads, 2 kv heads of 4; ffn 20
  save_huggingface(dir / "m", model.config, model.params);
  const std::vector<double> qkv = model.values("layers.0.attention.qkv.weight");
  const std::vector<double> gate_up = model.values("layers.0.mlp.gate_up.weight");
  const auto rows = [](const std::vector<double>& v, int64_t begin, int64_t count) {
    return std::vector<double>(v.begin() + begin * 16, v.begin() + (begin + count) * 16);
  };
  const std::string layer = "model.layers.0.";
  EXPECT_EQ(stored(dir / "m", layer + "self_attn.q_proj.weight", {16, 16}), rows(qkv, 0, 16));
  EXPECT_EQ(stored(dir / "m", layer + "self_attn.k_proj.weight", {8, 16}), rows(qkv, 16, 8));
  EXPECT_EQ(stored(dir / "m", layer + "self_attn.v_proj.weight", {8, 16}), rows(qkv, 24, 8));
  EXPECT_EQ(stored(dir / "m", layer + "mlp.gate_proj.weight", {20, 16}), rows(gate_up, 0, 20));
  EXPECT_EQ(stored(dir / "m", layer + "mlp.up_proj.weight", {20, 16}), rows(gate_up, 20, 20));
  EXPECT_EQ(stored(dir / "m", layer + "mlp.down_proj.weight", {16, 20}),
            model.values("layers.0.mlp.down.weight"));
  EXPECT_EQ(stored(dir / "m", "lm_head.weight", {29, 16}), model.values("head.weight"));
}

// Fails when a tensor of a T5 has the name of another: the round trip would not see it.
TEST(HuggingFace, T5TensorsHaveTheirNames) {
  const TemporaryDirectory dir;
  Config config = test::tiny_huggingface_t5();  // 2 heads of 6
  config.model.tied = false;
  config.model.activation = Activation::GeGluTanh;
  config.model.ffn = 20;
  Model model(config, DType::f64, 3);
  save_huggingface(dir / "m", config, model.params);
  const auto expect_rows = [&](const std::string& ours, int64_t begin, int64_t rows,
                               const std::string& theirs) {
    const std::vector<double> all = model.values(ours);
    const Shape& shape = model.params.find(ours)->spec.shape;
    const int64_t columns = whole_of(shape).columns;
    const auto first = all.begin() + begin * columns;
    EXPECT_EQ(stored(dir / "m", theirs, shape.rank() == 1 ? Shape{rows} : Shape{rows, columns}),
              std::vector<double>(first, first + rows * columns))
        << theirs;
  };
  expect_rows("embedding.tokens.weight", 0, 29, "shared.weight");
  expect_rows("head.weight", 0, 29, "lm_head.weight");
  for (const std::string side : {"encoder", "decoder"}) {
    const bool is_decoder = side == "decoder";
    const std::string ours = side + ".layers.1.", block = side + ".block.1.layer.";
    const std::string mlp = block + (is_decoder ? "2." : "1.");
    expect_rows(side + ".relative_bias.weight", 0, 6,
                side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight");
    expect_rows(side + ".final_norm.weight", 0, 16, side + ".final_layer_norm.weight");
    expect_rows(ours + "norm1.weight", 0, 16, block + "0.layer_norm.weight");
    expect_rows(ours + "norm2.weight", 0, 16, mlp + "layer_norm.weight");
    const std::string qkv = ours + "attention.qkv.weight", self = block + "0.SelfAttention.";
    expect_rows(qkv, 0, 12, self + "q.weight");
    expect_rows(qkv, 12, 12, self + "k.weight");
    expect_rows(qkv, 24, 12, self + "v.weight");
    expect_rows(ours + "attention.out.weight", 0, 16, self + "o.weight");
    expect_rows(ours + "mlp.gate_up.weight", 0, 20, mlp + "DenseReluDense.wi_0.weight");
    expect_rows(ours + "mlp.gate_up.weight", 20, 20, mlp + "DenseReluDense.wi_1.weight");
    expect_rows(ours + "mlp.down.weight", 0, 16, mlp + "DenseReluDense.wo.weight");
  }
  const std::string cross = "decoder.layers.1.cross_", theirs = "decoder.block.1.layer.1.";
  expect_rows(cross + "norm.weight", 0, 16, theirs + "layer_norm.weight");
  expect_rows(cross + "attention.q.weight", 0, 12, theirs + "EncDecAttention.q.weight");
  expect_rows(cross + "attention.kv.weight", 0, 12, theirs + "EncDecAttention.k.weight");
  expect_rows(cross + "attention.kv.weight", 12, 12, theirs + "EncDecAttention.v.weight");
  expect_rows(cross + "attention.out.weight", 0, 16, theirs + "EncDecAttention.o.weight");
}

// Fails when the padding is written, or when a load leaves old values in it.
TEST(HuggingFace, PaddingOfTheVocabularyStaysHere) {
  const TemporaryDirectory dir;
  Config padded = test::tiny_llama();
  padded.model.vocab_multiple = 16;
  Model model(padded, DType::f32, 1), other(padded, DType::f32, 2);
  save_huggingface(dir / "m", padded, model.params);
  stored(dir / "m", "model.embed_tokens.weight", {29, 16});
  stored(dir / "m", "lm_head.weight", {29, 16});
  load_huggingface(dir / "m", other.params);
  for (const char* name : {"embedding.tokens.weight", "head.weight"}) {
    const std::vector<double> a = model.values(name), b = other.values(name);
    ASSERT_EQ(b.size(), 32u * 16u);
    for (size_t i = 0; i < b.size(); ++i) EXPECT_EQ(b[i], i < 29 * 16 ? a[i] : 0.0);
  }
}

// Rewrites a saved model: f sees every tensor and may rename it, change it or return false to drop
// it.
struct Edited {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};
void write_tensors(const fs::path& file, const std::vector<Edited>& tensors) {
  std::vector<TensorToWrite> list;
  for (const Edited& t : tensors) list.push_back({t.name, t.dtype, t.shape});
  write_safetensors(file, list, [&](const TensorToWrite& out, std::span<std::byte> to) {
    for (const Edited& t : tensors) {
      if (t.name == out.name) std::copy(t.bytes.begin(), t.bytes.end(), to.begin());
    }
  });
}
std::vector<Edited> tensors_of_file(const fs::path& file) {
  const SafetensorsReader reader(file);
  std::vector<Edited> tensors;
  for (const StoredTensor& t : reader.tensors()) {
    const auto bytes = reader.bytes(t);
    tensors.push_back({t.name, *t.dtype, t.shape, {bytes.begin(), bytes.end()}});
  }
  return tensors;
}

class HuggingFaceFile : public testing::Test {
 protected:
  HuggingFaceFile()
      : model(test::tiny_gpt(), DType::f32, 1), other(test::tiny_gpt(), DType::f32, 2) {
    save_huggingface(dir / "m", model.config, model.params);
    tensors = tensors_of_file(weights());
  }
  fs::path weights() const { return dir.path() / "m" / "model.safetensors"; }
  Edited& tensor(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const Edited& t) { return t.name == name; });
  }
  void expect_loads() {
    write_tensors(weights(), tensors);
    EXPECT_NO_THROW(load_huggingface(dir / "m", other.params));
    EXPECT_TRUE(test::same_bits(model.params, other.params, &Param::value));
  }
  void expect_refused(const std::string& message) {
    write_tensors(weights(), tensors);
    expect_error(ErrorKind::Data, message, [&] { load_huggingface(dir / "m", other.params); });
  }

  TemporaryDirectory dir;
  Model model, other;
  std::vector<Edited> tensors;
};

// Fails when the prefix is demanded: OpenAI's own upload has none.
TEST_F(HuggingFaceFile, NamesWithoutPrefixLoad) {
  for (Edited& t : tensors) t.name = without_prefix(t.name);
  expect_loads();
}

// Fails when an old file's mask is taken for an unknown parameter.
TEST_F(HuggingFaceFile, KnownBuffersAreIgnored) {
  tensors.push_back(
      {"transformer.h.0.attn.bias", DType::u8, {1, 1, 2, 2}, std::vector<std::byte>(4)});
  tensors.push_back({"h.1.attn.masked_bias", DType::f32, {}, std::vector<std::byte>(4)});
  expect_loads();
}

// Each fails when its check is removed.
TEST_F(HuggingFaceFile, UnknownTensorsAreNamed) {
  tensors.push_back({"transformer.h.2.ln_1.weight", DType::f32, {1}, std::vector<std::byte>(4)});
  expect_refused("\"transformer.h.2.ln_1.weight\"");
}
TEST_F(HuggingFaceFile, AMissingTensorIsNamed) {
  std::erase_if(tensors, [](const Edited& t) { return t.name == "transformer.h.1.mlp.c_fc.bias"; });
  expect_refused("no tensor \"transformer.h.1.mlp.c_fc.bias\"");
}
TEST_F(HuggingFaceFile, AnotherShapeIsNamed) {
  tensor("transformer.h.0.mlp.c_fc.weight").shape = {64, 16};
  expect_refused("\"transformer.h.0.mlp.c_fc.weight\" is [64, 16], the model has [16, 64]");
}
TEST_F(HuggingFaceFile, WholeNumbersAreNoWeights) {
  tensor("transformer.ln_f.weight").dtype = DType::i32;
  expect_refused("\"transformer.ln_f.weight\" is stored as I32");
}
TEST_F(HuggingFaceFile, ATiedHeadMayBeStoredTwiceButNotDifferently) {
  Edited head = tensor("transformer.wte.weight");
  head.name = "lm_head.weight";
  tensors.push_back(head);
  expect_loads();
  tensor("lm_head.weight").bytes[5] ^= std::byte{1};
  expect_refused("but tie_word_embeddings is true");
}

// Fails when a value is reinterpreted instead of converted.
TEST_F(HuggingFaceFile, EveryFloatingTypeIsConverted) {
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16}) {
    std::vector<Edited> converted = tensors;
    for (Edited& t : converted) {
      std::vector<std::byte> bytes(t.bytes.size() / 4 * size_of(dtype));
      convert_elements(t.bytes, t.dtype, bytes, dtype);
      t.bytes = std::move(bytes);
      t.dtype = dtype;
    }
    write_tensors(weights(), converted);
    load_huggingface(dir / "m", other.params);
    const double bound = dtype == DType::f64 ? 0.0 : 0x1p-8;
    EXPECT_LE(
        test::largest_difference(model.config.model, model.params, other.params, &Param::value),
        bound);
    if (dtype != DType::f64) {
      EXPECT_FALSE(test::same_bits(model.params, other.params, &Param::value));
    }
  }
}

class HuggingFaceShards : public HuggingFaceFile {
 protected:
  HuggingFaceShards() {
    fs::remove(weights());
    std::vector<Edited> halves[2];
    for (size_t i = 0; i < tensors.size(); ++i) {
      halves[i % 2].push_back(tensors[i]);
      index["weight_map"][tensors[i].name] = shard(i % 2);
    }
    for (size_t i : {0u, 1u}) write_tensors(dir.path() / "m" / shard(i), halves[i]);
  }
  static std::string shard(size_t i) {
    return "model-0000" + std::to_string(i + 1) + "-of-00002.safetensors";
  }
  void write_index() {
    std::ofstream(dir.path() / "m" / "model.safetensors.index.json") << index.dump();
  }
  void expect_index_refused(const std::string& message) {
    write_index();
    expect_error(ErrorKind::Data, message, [&] { load_huggingface(dir / "m", other.params); });
  }
  Json index = Json::object();
};

TEST_F(HuggingFaceShards, LoadTogether) {
  write_index();
  load_huggingface(dir / "m", other.params);
  EXPECT_TRUE(test::same_bits(model.params, other.params, &Param::value));
}
// Each fails when the index is believed.
TEST_F(HuggingFaceShards, PathsOutOfTheDirectoryAreRefused) {
  for (const char* path : {"../model.safetensors", "/etc/passwd", "..", "", "a/b"}) {
    index["weight_map"]["transformer.ln_f.bias"] = path;
    expect_index_refused("is not a file name");
  }
  index["weight_map"]["transformer.ln_f.bias"] = 7;
  expect_index_refused("is not a file name");
}
TEST_F(HuggingFaceShards, AnIndexThatDoesNotMatchIsRefused) {
  index["weight_map"]["transformer.ln_f.bias"] =
      index["weight_map"]["transformer.ln_f.bias"] == shard(0) ? shard(1) : shard(0);
  expect_index_refused("\"transformer.ln_f.bias\" is not in");
}
TEST_F(HuggingFaceShards, AMissingShardIsNamed) {
  fs::remove(dir.path() / "m" / shard(1));
  expect_index_refused(shard(1));
}
TEST_F(HuggingFaceShards, ATensorInTwoShardsIsRefused) {
  write_tensors(dir.path() / "m" / shard(1), tensors);
  expect_index_refused("stands in");
}
TEST_F(HuggingFaceShards, NoIndexNoModel) {
  expect_error(ErrorKind::Data, "holds neither model.safetensors nor",
               [&] { load_huggingface(dir / "m", other.params); });
  std::ofstream(dir.path() / "m" / "pytorch_model.bin") << "x";
  expect_error(ErrorKind::Data, "must be converted",
               [&] { load_huggingface(dir / "m", other.params); });
}

// Fails when a rank reads the rows or columns of another.
TEST(HuggingFace, EachRankReadsItsPieces) {
  const TemporaryDirectory dir;
  Model whole(test::tiny_llama(), DType::f32, 1);
  save_huggingface(dir / "m", whole.config, whole.params);
  const ParallelLayout layout{.tensor = 2};
  for (const int rank : {0, 1}) {
    Config config = test::tiny_llama();
    config.parallel.tensor = 2;
    config.model.vocab = 29;
    config.model.vocab_multiple = 1;  // padded to 30 for two ranks
    Model part(config, DType::f32, 2, layout, rank);
    load_huggingface(dir / "m", part.params);
    for (Param* param : part.params.all()) {
      const std::vector<double> local = test::values_of(param->value);
      std::vector<double> logical = whole.values(param->spec.name);
      logical.resize(static_cast<size_t>(param->spec.shape.elements()));  // padding: zeros
      const int64_t columns = param->spec.shape.elements() / param->spec.shape[0];
      const int64_t local_columns = param->value.shape.elements() / param->value.shape[0];
      for (const Piece& piece : param->pieces) {
        const Rectangle& r = piece.logical;
        for (int64_t i = 0; i < r.elements(); ++i) {
          const int64_t row = i / r.columns, column = i % r.columns;
          const int64_t from = (r.row + row) * columns + r.column + column;
          const int64_t to = (piece.local_row + row) * local_columns + piece.local_column + column;
          ASSERT_EQ(local[static_cast<size_t>(to)], logical[static_cast<size_t>(from)])
              << param->spec.name;
        }
      }
    }
  }
}

// Fails when the gradient of a turned or fused matrix is reported in our own layout.
TEST(HuggingFace, ValuesUnderTheirNamesAreWhatTheFileHolds) {
  for (const auto& [name, config] : exported_families()) {
    const TemporaryDirectory dir;
    Model model(config, DType::f32, 4);
    save_huggingface(dir / "m", config, model.params);
    const SafetensorsReader reader(dir.path() / "m" / "model.safetensors");
    size_t seen = 0;
    for (const Param* param : model.params.all()) {
      for (const NamedValues& v :
           huggingface_values(huggingface_family(config), param->spec, param->value, *model.device,
                              config.model.vocab)) {
        EXPECT_EQ(v.values, reader.read_f64(reader.at(v.name))) << v.name;
        EXPECT_EQ(v.shape, reader.at(v.name).shape);
        ++seen;
      }
    }
    EXPECT_EQ(seen, reader.tensors().size());
  }
}

std::string content_of(const fs::path& dir) {
  std::string all;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file()) all += entry.path().string() + read_text(entry.path());
  }
  return all;
}

// Fails when an earlier output cannot be replaced, or something else can.
TEST(HuggingFaceOutput, ReplacesOnlyWhatItWrote) {
  const TemporaryDirectory dir;
  Model first(test::tiny_gpt(), DType::f32, 1), second(test::tiny_gpt(), DType::f32, 2);
  save_huggingface(dir / "new/deep/out/", first.config, first.params);
  const fs::path out = dir / "new/deep/out";
  save_huggingface(out, second.config, second.params);
  Model loaded(test::tiny_gpt(), DType::f32, 3);
  load_huggingface(out, loaded.params);
  EXPECT_TRUE(test::same_bits(loaded.params, second.params, &Param::value));
  EXPECT_EQ(std::distance(fs::directory_iterator(out.parent_path()), fs::directory_iterator()), 1)
      << "a temporary directory was left";

  fs::create_directory(dir / "empty");
  EXPECT_NO_THROW(save_huggingface(dir / "empty", first.config, first.params));

  const auto refuses = [&](const fs::path& path, const std::string& message) {
    const std::string before = content_of(dir.path());
    expect_error(ErrorKind::Data, message,
                 [&] { save_huggingface(path, first.config, first.params); });
    expect_error(ErrorKind::Data, message, [&] { check_huggingface_output(path, first.config); });
    EXPECT_EQ(content_of(dir.path()), before);
  };
  std::ofstream(out / "notes.txt") << "mine";
  refuses(out, "\"notes.txt\"");
  fs::create_directory(dir / "foreign");
  fs::copy_file(dir / "empty/config.json", dir / "foreign/config.json");
  refuses(dir / "foreign", "did not write");
  write_tensors(dir / "foreign/model.safetensors",
                tensors_of_file(dir / "empty/model.safetensors"));
  refuses(dir / "foreign", "did not write");
  std::ofstream(dir / "file") << "x";
  refuses(dir / "file", "not a directory");
}

// Fails when a model without a family is noticed only after training.
TEST(HuggingFaceOutput, AModelWithoutFamilyIsRefusedBeforeAnythingIsWritten) {
  const TemporaryDirectory dir;
  Config config = test::tiny_gpt();
  config.model.position = PositionKind::None;
  expect_error(ErrorKind::Usage, "model.position",
               [&] { check_huggingface_output(dir / "out", config); });
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

// Fails when the disk fills up and half a model stays, or the earlier output is gone.
TEST(HuggingFaceOutput, ADiskErrorLeavesTheEarlierOutput) {
  const TemporaryDirectory dir;
  Model first(test::tiny_gpt(), DType::f32, 1), second(test::tiny_gpt(), DType::f32, 2);
  save_huggingface(dir / "out", first.config, first.params);
  const std::string before = content_of(dir.path());
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 8000, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error(ErrorKind::Data, "cannot write",
               [&] { save_huggingface(dir / "out", second.config, second.params); });
  expect_error(ErrorKind::Data, "cannot write",
               [&] { save_huggingface(dir / "fresh", second.config, second.params); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content_of(dir.path()), before);
  EXPECT_FALSE(fs::exists(dir / "fresh"));
}

}  // namespace
}  // namespace bev
