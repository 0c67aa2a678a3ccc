// A training run small enough for a test, with arenas of exactly the planned size.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/data_loader.h"
#include "data/mock_dataset.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "train/step_runner.h"

namespace bev::test {

class SmallRun {
 public:
  explicit SmallRun(const Config& c, const ModelOptions& options = {})
      : config(without_memory(c)),
        plan(dry_run(config, {.model = options})),
        device(make_device(config.device)),
        assembly(config, *device, plan.arenas, options),
        loader(std::make_shared<MockDataset>(plan.model.vocab, 7),
               DataLoader::shape_of(config, assembly.spec.batch)),
        stepper(assembly, lr_schedule_from(config, plan.batch.global_batch, plan.iterations)) {
    assembly.initialize();
  }

  // Trains `steps` steps and returns the losses.
  std::vector<double> train(int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) losses.push_back(stepper.step(loader.next()).loss);
    return losses;
  }

  // Nothing of earlier runs on this machine.
  static Config without_memory(Config c) {
    c.device.cache = "off";
    return c;
  }

  const Config config;
  const Plan plan;
  std::unique_ptr<Device> device;
  TrainingState assembly;
  DataLoader loader;
  StepRunner stepper;
};

// All elements of a tensor as doubles. REQUIRES: contiguous; without a device, host memory.
std::vector<double> values_of(const ConstTensor& t);
std::vector<double> values_of(Device& device, const ConstTensor& t);

// Whether the gradient of a parameter is rounding noise, which Adam scales up.
// Softmax cancels the bias of keys (and it shares a tensor with others), and what is added to the
// embeddings of all contexts of a bi-encoder: the last bias of their encoder.
bool has_no_gradient(const ModelConfig& model, const std::string& parameter);

// The largest ratio, over all parameters with a gradient, of the norm of the difference to the norm
// of b's tensor. `tensor` selects what is compared: &Param::value or &Param::grad.
double largest_difference(const ModelConfig& model, ParamStore& a, ParamStore& b,
                          Tensor Param::* tensor);

// Whether all values are the same bits.
bool same_bits(ParamStore& a, ParamStore& b, Tensor Param::* tensor);

}  // namespace bev::test
