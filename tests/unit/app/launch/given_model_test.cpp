#include "app/launch/given_model.h"

#include <gtest/gtest.h>

#include "app/cli/shared_flags.h"
#include "support/expect_error.h"

namespace bev::app {
namespace {

using test::expect_error;
using Args = std::vector<std::string>;

constexpr std::array<VerbFlag, 7> kGivenFlags{{{"--batch", "N", ""},
                                               {"--length", "N", ""},
                                               {"--task", "NAME", ""},
                                               {"--text", "FILE", ""},
                                               {"--tensor", "N", ""},
                                               kDeviceFlag,
                                               kPrecisionFlag}};
constexpr VerbSpec kGivenVerb{
    .name = "eval", .summary = "", .flags = kGivenFlags, .positional = "DIR"};

GivenModel given(const Args& args) { return GivenModel(kGivenVerb, args); }

// The flags of run_gpt2_eval.py.
TEST(GivenModel, RenamesWhatTheVerbHas) {
  const GivenModel model =
      given({"--model-parallel-size", "1", "--num-layers", "24", "--model-path", "dir",
             "--data-path", "text", "--batch-size=16", "--cloze-eval", "--cache-dir", "cache"});
  EXPECT_EQ(model.args(),
            (Args{"--tensor", "1", "dir", "--text", "text", "--batch", "16", "--task", "lambada"}));
  ASSERT_EQ(model.notes().size(), 1u);
  EXPECT_TRUE(model.notes()[0].starts_with("--cache-dir is accepted"));
}

TEST(GivenModel, LeavesTheVerbsOwnFlags) {
  const Args own{"run", "--text", "a b", "--lenght", "5", "--", "--load"};
  EXPECT_EQ(given(own).args(), own);
}

TEST(GivenModel, NotesWhatIsOfTraining) {
  const GivenModel model = given({"run", "--log-interval", "10", "--no-load-rng", "--lr", "1e-4"});
  EXPECT_EQ(model.args(), Args{"run"});
  EXPECT_EQ(model.notes().size(), 3u);
}

TEST(GivenModel, RefusesWhatIsMissing) {
  expect_error(ErrorKind::Usage, "--num-experts 8 does not work in this version",
               [] { given({"run", "--num-experts", "8"}); });
  expect_error(ErrorKind::Usage, "--num-layers many",
               [] { given({"run", "--num-layers", "many"}); });
}

// A derived number is the same as the number itself.
TEST(GivenModel, ComparesTheShape) {
  ModelFolder folder;
  folder.config.model.layers = 2;
  folder.config.model.width = 16;
  folder.config.model.heads = 4;
  given({"--num-layers", "2", "--ffn-hidden-size", "64", "--kv-channels", "4", "--hidden-dropout",
         "0.5"})
      .require_same(folder);
  const GivenModel other =
      given({"--num-layers", "24", "--hidden-size", "16", "--ffn-hidden-size", "65"});
  const std::string message =
      expect_error(ErrorKind::Usage, "\n  --num-layers 24: its model.layers is 2\n",
                   [&] { other.require_same(folder); });
  EXPECT_NE(message.find("--ffn-hidden-size 65"), std::string::npos);
  EXPECT_EQ(message.find("--hidden-size 16"), std::string::npos);
}

}  // namespace
}  // namespace bev::app
