#include "train/bert_weights.h"

#include <gtest/gtest.h>

#include <map>

#include "convert/checkpoint_weights.h"
#include "pipeline/rank_model.h"
#include "support/expect_error.h"
#include "support/small_run.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"

namespace bev::test {
namespace {

// A checkpoint of a BERT, and bi-encoders that begin with it.
class BertWeights : public ::testing::Test {
 protected:
  BertWeights() : bert_(config_of(tiny_bert())) { write(bert_, folder_.path()); }

  static void write(SmallRun& run, const std::filesystem::path& folder) {
    StoreWeights weights(run.assembly.params);
    std::vector<ParamSpec> specs;
    for (const Param* param : run.assembly.params.all()) specs.push_back(param->spec);
    write_release(folder, run.config, specs, weights, {.program = "a test", .origin = "a test"});
  }

  static Config config_of(Config config) {
    config.device.kind = DeviceKind::Cpu;
    return config;
  }
  Config biencoder(bool shared) const {
    Config c = config_of(tiny_biencoder());
    c.model.shared_towers = shared;
    c.model.projection = 3;
    c.checkpoint.bert = folder_.path().string();
    return c;
  }
  std::vector<double> of_bert(const std::string& name) {
    for (const Param* param : bert_.assembly.params.all())
      if (param->spec.name == name) return values_of(param->value);
    return {};
  }

  TemporaryDirectory folder_;
  SmallRun bert_;
};

// Fails when a parameter of an encoder keeps its initial values, or a projection does not.
TEST_F(BertWeights, FillTheEncoders) {
  for (const bool shared : {true, false}) {
    SmallRun run(biencoder(shared));
    std::map<std::string, std::vector<double>> before;
    for (const Param* param : run.assembly.params.all())
      before[param->spec.name] = values_of(param->value);
    load_bert(open_bert(run.config), run.assembly);
    for (const Param* param : run.assembly.params.all()) {
      std::string name = param->spec.name;
      for (const std::string tower : {"query.", "context."})
        if (name.starts_with(tower)) name.erase(0, tower.size());
      const bool is_new = name.starts_with("projection");
      EXPECT_EQ(values_of(param->value), is_new ? before[param->spec.name] : of_bert(name)) << name;
    }
  }
}

TEST_F(BertWeights, RefuseAnotherShape) {
  Config deeper = biencoder(true);
  deeper.model.layers = 3;
  const std::string why =
      expect_error(ErrorKind::Usage, "not of the encoders' shape", [&] { open_bert(deeper); });
  EXPECT_NE(why.find("model.layers = 3 (was 2)"), std::string::npos) << why;
  EXPECT_EQ(why.find("family"), std::string::npos) << why;
  Config no_pairs = config_of(tiny_bert());
  no_pairs.model.binary_head = false;
  SmallRun without_types(no_pairs);
  const TemporaryDirectory folder;
  write(without_types, folder.path());
  Config typed = biencoder(true);
  typed.checkpoint.bert = folder.path().string();
  expect_error(ErrorKind::Usage, "the BERT has no token types", [&] { open_bert(typed); });
  Config nowhere = biencoder(true);
  nowhere.checkpoint.bert += "/nothing";
  expect_error(ErrorKind::Data, "no checkpoint found", [&] { open_bert(nowhere); });
}

}  // namespace
}  // namespace bev::test
