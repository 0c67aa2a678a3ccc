#include "pipeline/model_parameters.h"

#include "ops/make_device.h"
#include "pipeline/rank_model.h"

namespace bev {

std::vector<ParamSpec> model_parameters(const Config& config) {
  Config anywhere = config;
  anywhere.device = {.kind = DeviceKind::Cpu};
  const std::unique_ptr<Device> device = make_null_device(anywhere.device);
  const PlacedModel model(anywhere, *device);
  std::vector<ParamSpec> specs;
  for (const Param* param : model.params.distinct()) specs.push_back(param->spec);
  return specs;
}

}  // namespace bev
