#include "support/two_state_models.h"

#include "model/family/family.h"

namespace bev::test {

namespace {

class TwoStateSpec {
 public:
  explicit TwoStateSpec(const Config& config)
      : gpt_(gpt_spec(config)),
        spec_{.batch = gpt_.batch,
              .hidden = {},
              .losses = {{.name = "first"}, {.name = "second", .weight = 0.5}},
              .parts = {},
              .recompute = gpt_.recompute} {
    for (const std::string& name : names_)
      spec_.hidden.push_back({name, gpt_.hidden.front().width});
  }

  size_t blocks() const { return gpt_.parts.size() - 3; }
  void embed(int state) {
    auto embedding = std::get<EmbeddingSpec>(gpt_.parts.front().is);
    embedding.positions->name = name_of(state) + ".positions.weight";
    add({state, embedding});
  }
  void block(size_t number, int state) { add({state, gpt_.parts[number + 1].is}); }
  void norm(int state) {
    auto norm = std::get<FinalNormSpec>(gpt_.parts[blocks() + 1].is);
    norm.name = name_of(state) + ".norm";
    add({state, norm});
  }
  void head(int state) {
    auto head = std::get<LmHeadSpec>(gpt_.parts.back().is);
    head.loss = state;
    add({state, head});
  }
  void add(const PartSpec& part) { spec_.parts.push_back(part); }

  ModelSpec take() { return std::move(spec_); }

 private:
  const std::string& name_of(int state) const { return names_[static_cast<size_t>(state)]; }

  const std::vector<std::string> names_{"first", "second"};
  ModelSpec gpt_, spec_;
};

}  // namespace

ModelSpec two_towers(const Config& config) {
  TwoStateSpec spec(config);
  for (size_t i = 0; i < spec.blocks(); ++i) {
    const int state = static_cast<int>(i % 2);
    if (i < 2) spec.embed(state);
    spec.block(i, state);
    if (i + 2 < spec.blocks()) continue;
    spec.norm(state);
    spec.head(state);
  }
  return spec.take();
}

ModelSpec encoder_decoder(const Config& config) {
  constexpr int kEncoder = 0, kDecoder = 1;
  TwoStateSpec spec(config);
  const size_t encoder_blocks = spec.blocks() / 3;
  spec.embed(kEncoder);
  for (size_t i = 0; i < encoder_blocks; ++i) {
    if (i + 1 == encoder_blocks) spec.head(kEncoder);
    spec.block(i, kEncoder);
  }
  spec.norm(kEncoder);
  spec.embed(kDecoder);
  for (size_t i = encoder_blocks; i < spec.blocks(); ++i) {
    spec.block(i, kDecoder);
    if (i != encoder_blocks + 1) spec.add({kDecoder, AddSpec{}, kEncoder});
  }
  spec.norm(kDecoder);
  spec.head(kDecoder);
  return spec.take();
}

}  // namespace bev::test
