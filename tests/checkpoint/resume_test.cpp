// N steps, saved and continued for N more, are 2N steps bit for bit.
#include <gtest/gtest.h>

#include "checkpoint/checkpointed_run.h"
#include "checkpoint/resume_check.h"
#include "support/expect_error.h"
#include "support/layout_name.h"
#include "support/same_checkpoint.h"
#include "support/temporary_directory.h"
#include "verify/layout_run.h"

namespace bev::test {
namespace {

struct ResumeCase {
  std::string name;
  Config config;
};

std::vector<ResumeCase> cases() {
  std::vector<ResumeCase> all;
  const auto add = [&](const char* name, Config config, auto change) {
    change(config);
    all.push_back({name, config});
  };
  const auto on_cpu = [](Config& c) { c.device.kind = DeviceKind::Cpu; };
  const auto nothing = [](Config&) {};
  add("reference_gpt", divisible_gpt(), nothing);
  add("cpu_llama", divisible_llama(), on_cpu);
  add("cpu_bf16_masters", divisible_gpt(), [&](Config& c) {
    on_cpu(c);
    c.device.precision = Precision::Bf16;
  });
  add("cpu_sgd", divisible_gpt(), [&](Config& c) {
    on_cpu(c);
    c.optim.kind = OptimizerKind::Sgd;
  });
  add("cpu_bf16_lamb", divisible_gpt(), [&](Config& c) {
    on_cpu(c);
    c.device.precision = Precision::Bf16;
    c.optim.kind = OptimizerKind::Lamb;
  });
  add("cpu_mylamb2", divisible_gpt(), [&](Config& c) {
    on_cpu(c);
    c.optim.kind = OptimizerKind::MyLamb2;
  });
  add("ramp_up_by_samples", divisible_gpt(), [](Config& c) {
    c.train.iterations = 0;
    c.train.samples = 48;
    c.train.ramp_start = 4;
    c.train.ramp_increment = 2;
    c.train.ramp_samples = 24;
    c.optim.warmup_iterations = 0;
    c.optim.warmup_samples = 20;
  });
  for (const char* layout :
       {"tp2.sp", "dp2.zero1", "dp2.zero2", "dp2.zero3", "pp2.chunks2", "tp2.pp2.dp2"})
    all.push_back({layout_name(layout), under(divisible_llama(), layout)});
  for (const char* layout : {"dp1", "tp2.pp2.dp2.zero1"}) {
    Config lambtp = under(divisible_gpt(), layout);
    lambtp.optim.kind = OptimizerKind::LambTp;
    lambtp.optim.lambtp_solution = 3;
    all.push_back({"lambtp_" + layout_name(layout), lambtp});
  }
  Config mixed = under(divisible_llama(), "dp2.zero1");
  mixed.device.kind = DeviceKind::Cpu;
  mixed.device.precision = Precision::Bf16;
  all.push_back({"cpu_bf16_zero1", mixed});
  mixed.checkpoint.asynchronous = false;
  all.push_back({"cpu_bf16_zero1_waiting", mixed});
  return all;
}

std::string name_of_case(const testing::TestParamInfo<ResumeCase>& info) { return info.param.name; }

class Resume : public testing::TestWithParam<ResumeCase> {};

TEST_P(Resume, ContinuesBitForBit) { expect_continues_bit_for_bit(GetParam().config); }

INSTANTIATE_TEST_SUITE_P(Trainings, Resume, testing::ValuesIn(cases()), name_of_case);

class ResumedOnSentences : public testing::TestWithParam<SampleOrder> {};

// Fails when the place in a file of sentences, its epoch or the moments of LAMB are lost.
TEST_P(ResumedOnSentences, BertContinuesBitForBit) {
  const TemporaryDirectory files;
  const Config bert = sentence_bert(files.path(), GetParam());
  for (const char* layout : {"one", "tp2.sp.dp2.zero2", "dp2.pp2.chunks2.interleaved.zero3"}) {
    SCOPED_TRACE(layout);
    expect_continues_bit_for_bit(under(bert, layout));
  }
  Config mixed = under(bert, "dp2.zero1");
  mixed.device.kind = DeviceKind::Cpu;
  mixed.device.precision = Precision::Bf16;
  expect_continues_bit_for_bit(mixed);
}

// Fails when a state of the decoder's stages, the table of three stages or the place in the file is
// lost.
TEST_P(ResumedOnSentences, T5ContinuesBitForBit) {
  const TemporaryDirectory files;
  Config t5 = sentence_t5(files.path(), GetParam());
  for (const char* layout :
       {"one", "tp2.sp.dp2.zero2", "pp4.split1", "dp2.pp2.chunks2.split3.interleaved.zero3"}) {
    SCOPED_TRACE(layout);
    expect_continues_bit_for_bit(under(t5, layout));
    t5.model.position = PositionKind::Relative;
  }
  Config mixed = under(t5, "dp2.zero1");
  mixed.device.kind = DeviceKind::Cpu;
  mixed.device.precision = Precision::Bf16;
  expect_continues_bit_for_bit(mixed);
}

TEST_P(ResumedOnSentences, BiencoderContinuesBitForBit) {
  const TemporaryDirectory files;
  Config biencoder = sentence_biencoder(files.path(), GetParam());
  for (const char* layout : {"one", "tp2.sp.dp2.zero2", "dp2.pp2.zero3"}) {
    SCOPED_TRACE(layout);
    expect_continues_bit_for_bit(under(biencoder, layout));
    biencoder.model.shared_towers = !biencoder.model.shared_towers;
    biencoder.model.projection = 6;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ResumedOnSentences,
                         testing::Values(SampleOrder::Arithmetic, SampleOrder::Megatron),
                         [](const auto& order) {
                           return std::string(name_of_choice(order.param));
                         });

TEST(ResumeChoices, FinetuneTakesTheWeightsAlone) {
  const TemporaryDirectory first, second;
  Config config = divisible_gpt();
  run_checkpointed(first_part(config, first.path(), 0));
  config.checkpoint.load = first.path().string();
  config.checkpoint.finetune = true;
  config.checkpoint.save = second.path().string();
  config.train.iterations = 1;
  config.optim.warmup_iterations = 0;
  config.optim.lr = 0;
  config.optim.weight_decay = 0;
  const RunOutcome outcome = run_checkpointed(config);
  ASSERT_EQ(outcome.iterations.size(), 1u);
  EXPECT_EQ(outcome.iterations[0].iteration, 1);
  EXPECT_EQ(outcome.iterations[0].samples, 8);
  const CheckpointReader a(place_of(first.path(), 4)), b(place_of(second.path(), 1));
  // Without a learning rate the weights stay.
  const std::string name = "layers.0.mlp.up.weight";
  std::vector<double> x(static_cast<size_t>(a.find(name)->shape.elements())), y(x.size());
  for (const auto& [stored, values] : {std::pair(&a, &x), std::pair(&b, &y)})
    stored->read(*stored->find(name), whole_of(stored->find(name)->shape), DType::f64,
                 reinterpret_cast<std::byte*>(values->data()));
  EXPECT_EQ(x, y);
}

TEST(ResumeChoices, WithoutItsStateTheOptimizerStartsAnew) {
  const TemporaryDirectory folder;
  Config config = divisible_gpt();
  run_checkpointed(first_part(config, folder.path(), 2));
  Config again = second_part(config, folder.path());
  again.checkpoint.load_optimizer = false;
  const RunOutcome outcome = run_checkpointed(again);
  ASSERT_EQ(outcome.iterations.size(), 2u);
  EXPECT_EQ(outcome.iterations[0].iteration, 3);
  EXPECT_EQ(outcome.iterations[0].samples, 24);
  // The warm-up begins again.
  const RunOutcome fresh = run_checkpointed(config);
  EXPECT_EQ(outcome.iterations[0].result.lr, fresh.iterations[0].result.lr);
}

TEST(ResumeChoices, WeightsAloneCannotContinue) {
  const TemporaryDirectory folder;
  Config config = divisible_gpt();
  config.checkpoint.save_optimizer = false;
  run_checkpointed(first_part(config, folder.path(), 2));
  EXPECT_EQ(CheckpointReader(place_of(folder.path(), 2)).find("layers.0.mlp.up.weight/adam.m"),
            nullptr);
  config.checkpoint.save_optimizer = true;
  expect_error(ErrorKind::Usage, "holds weights only",
               [&] { run_checkpointed(second_part(config, folder.path())); });
}

// Samples of which one cannot be read.
class WithAHole final : public Dataset {
 public:
  WithAHole(int64_t vocab, int64_t hole) : good_(vocab), hole_(hole) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    if (index == hole_) throw Error(ErrorKind::Data, "a hole");
    good_.read(index, batch, at);
  }
  std::string describe(int64_t index) const override { return good_.describe(index); }

 private:
  UnevenDataset good_;
  int64_t hole_;
};

// Of two ranks the second cannot read its part of the second batch: nobody has trained on it.
TEST(ResumeChoices, WhatNobodyTrainedOnIsNotBehindTheRun) {
  const TemporaryDirectory folder;
  const Config config = under(divisible_gpt(), "dp2");
  const RunOutcome outcome = run_checkpointed(first_part(config, folder.path(), 0),
                                              std::make_shared<WithAHole>(config.model.vocab, 15));
  EXPECT_EQ(outcome.summary.ending, ExitReason::BadData);
  const Manifest manifest = read_manifest(place_of(folder.path(), 1));
  EXPECT_EQ(manifest.data_position, 8);
  EXPECT_EQ(manifest.consumed_samples, 8);
}

TEST(ResumeChoices, ALengthInSamplesIsReachedWithAnotherBatch) {
  const TemporaryDirectory folder;
  Config config = divisible_gpt();
  config.train.iterations = 0;
  config.train.samples = 48;
  config.optim.warmup_iterations = 0;
  run_checkpointed(first_part(config, folder.path(), 3));
  Config smaller = second_part(config, folder.path());
  smaller.train.global_batch = 4;
  const RunOutcome outcome = run_checkpointed(smaller);
  EXPECT_EQ(outcome.iterations.size(), 6u);
  EXPECT_EQ(outcome.iterations.back().samples, 48);
}

TEST(ResumeChoices, AnotherPrecisionRoundsTheMasters) {
  const TemporaryDirectory folder;
  Config config = divisible_gpt();
  config.device.kind = DeviceKind::Cpu;
  config.device.precision = Precision::Bf16;
  run_checkpointed(first_part(config, folder.path(), 2));
  Config wide = second_part(config, folder.path());
  wide.device.precision = Precision::F32;
  wide.optim.lr = 0;
  wide.optim.weight_decay = 0;
  wide.checkpoint.scheduler = SchedulerSource::New;
  run_checkpointed(wide);
  const CheckpointReader a(place_of(folder.path(), 2)), b(place_of(folder.path(), 4));
  const auto values = [](const CheckpointReader& stored, const std::string& name) {
    std::vector<double> v(static_cast<size_t>(stored.find(name)->shape.elements()));
    stored.read(*stored.find(name), whole_of(stored.find(name)->shape), DType::f64,
                reinterpret_cast<std::byte*>(v.data()));
    return v;
  };
  const std::string name = "layers.1.attention.out.weight";
  EXPECT_EQ(values(a, name + "/master"), values(b, name));
  EXPECT_EQ(b.find(name + "/master"), nullptr);
}

}  // namespace
}  // namespace bev::test
