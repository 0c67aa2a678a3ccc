#include "config/megatron/megatron_scripts.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"

namespace bev::test {
namespace {

std::string own(const std::string& line) {
  std::istringstream in(line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  std::string text;
  for (const std::string& word : as_own_command(words)) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(MegatronScripts, SelectTheVerb) {
  EXPECT_EQ(own("pretrain_gpt.py --lr 1"), "train pretrain_gpt.py --lr 1");
  EXPECT_EQ(own("python -u a/b/pretrain_bert.py --lr 1"), "train a/b/pretrain_bert.py --lr 1");
  EXPECT_EQ(own("/usr/bin/python3.11 pretrain_t5.py"), "train pretrain_t5.py");
  EXPECT_EQ(own("python tools/preprocess_data.py --input x"), "preprocess --input x");
  EXPECT_EQ(own("python3 run_gpt2_eval.py --cloze-eval"), "eval --task wikitext --cloze-eval");
  EXPECT_EQ(own("./tasks/main.py --task LAMBADA"), "eval --task LAMBADA");
  EXPECT_EQ(own("tools/run_text_generation_server.py --port 1"), "serve --port 1");
  EXPECT_EQ(own("generate_samples_gpt2.py --load x"), "generate --load x");
}

TEST(MegatronScripts, LaunchersStartProcesses) {
  const std::string launched = "launch --nproc_per_node 8 pretrain_gpt.py --lr 1";
  const std::string line = "--nproc_per_node 8 pretrain_gpt.py --lr 1";
  for (const char* start :
       {"torchrun ", "/opt/bin/torchrun ", "python -m torch.distributed.run ",
        "python3 -u -m torch.distributed.launch ", "launch python -m torch.distributed.launch ",
        "launch torchrun ", "train torchrun "})
    EXPECT_EQ(own(start + line), launched) << start;
}

// Fails when words of other verbs and other programs are taken for scripts.
TEST(MegatronScripts, OtherCommandLinesStay) {
  for (const char* line :
       {"", "train run.toml --lr 1", "train", "tokenize pretrain_gpt.py", "inspect python",
        "launch --nproc_per_node 2 pretrain_gpt.py", "launch /usr/bin/python other.py",
        "plan pretrain_gpt.py", "eval run --text main.py", "version"})
    EXPECT_EQ(own(line), line);
}

TEST(MegatronScripts, OthersAreRefused) {
  EXPECT_THROW(own("python train.py"), Error);
  EXPECT_THROW(own("python -m pip install x"), Error);
  EXPECT_THROW(own("python"), Error);
  EXPECT_THROW(own("main.py --task RACE"), Error);
  EXPECT_THROW(own("train tools/preprocess_data.py"), Error);
  EXPECT_THROW(own("eval pretrain_gpt.py"), Error);
}

}  // namespace
}  // namespace bev::test
