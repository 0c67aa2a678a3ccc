#include "convert/model_parameters.h"

#include "ops/make_device.h"
#include "pipeline/placed_model.h"

namespace bev {

std::vector<ParamSpec> model_parameters(const Config& config) {
  Config on_nothing = config;
  on_nothing.device = {.kind = DeviceKind::Null};
  on_nothing.device.precision = Precision::F32;
  const std::unique_ptr<Device> device = make_null_device(on_nothing.device);
  const PlacedModel model(on_nothing, *device);
  std::vector<ParamSpec> specs;
  for (const Param* param : model.params.distinct()) specs.push_back(param->spec);
  return specs;
}

}  // namespace bev
