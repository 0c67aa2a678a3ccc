// The one typed description of a run. Const after start-up; derived numbers go into other types.
#pragma once

#include "config/model_config.h"
#include "config/run_config.h"

namespace bev {

struct Config {
  ModelConfig model;
  TrainConfig train;
  DataConfig data;
  EvalConfig eval;
  OptimConfig optim;
  LossConfig loss;
  RecomputeConfig recompute;
  DeviceConfig device;
  ParallelConfig parallel;
  CheckpointConfig checkpoint;
  GuardConfig guard;
  LogConfig log;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v.section("model", s.model, "what is trained");
    v.section("train", s.train, "batch and length");
    v.section("data", s.data, "where tokens come from");
    v.section("eval", s.eval, "validation while training");
    v.section("optim", s.optim, "learning rate and optimizer");
    v.section("loss", s.loss, "what is minimised");
    v.section("recompute", s.recompute, "less memory for more time");
    v.section("device", s.device, "where it runs");
    v.section("parallel", s.parallel, "how it is divided");
    v.section("checkpoint", s.checkpoint, "what is kept, and what a run continues from");
    v.section("guard", s.guard, "what is watched, and what happens when it is wrong");
    v.section("log", s.log, "what it says about itself");
  }
};

}  // namespace bev
