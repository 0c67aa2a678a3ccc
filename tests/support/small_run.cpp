#include "support/small_run.h"

#include <cmath>

#include "base/check.h"
#include "model/family/family.h"
#include "tensor/dtype_dispatch.h"

namespace bev::test {

std::vector<double> values_of(const ConstTensor& t) {
  BEV_CHECK(is_contiguous(t), Internal, "values_of a tensor with gaps");
  std::vector<double> values;
  visit_floating(t.dtype, "values_of", [&]<class T>() {
    const auto* data = reinterpret_cast<const T*>(t.data);
    for (int64_t i = 0; i < t.shape.elements(); ++i) values.push_back(static_cast<double>(data[i]));
  });
  return values;
}

namespace {

std::vector<std::byte> bytes_in(Device& device, const ConstTensor& t) {
  std::vector<std::byte> bytes(bytes_of(t));
  device.download(t.data, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

std::vector<double> values_of(Device& device, const ConstTensor& t) {
  const std::vector<std::byte> bytes = bytes_in(device, t);
  return values_of(tensor_over(bytes.data(), t.dtype, t.shape));
}

bool has_no_gradient(const ModelConfig& model, const std::string& parameter) {
  return parameter.ends_with("kv.bias") || is_bias_of_contexts(model, parameter);
}

double largest_difference(const ModelConfig& model, ParamStore& a, ParamStore& b,
                          Tensor Param::* tensor) {
  double largest = 0;
  for (Param* param : a.all()) {
    if (has_no_gradient(model, param->spec.name)) continue;
    const std::vector<double> x = values_of(a.device(), (*param).*tensor);
    const std::vector<double> y = values_of(b.device(), (*b.find(param->spec.name)).*tensor);
    double difference = 0, norm = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      difference += (x[i] - y[i]) * (x[i] - y[i]);
      norm += y[i] * y[i];
    }
    if (difference > 0) largest = std::max(largest, std::sqrt(difference / norm));
  }
  return largest;
}

bool same_bits(ParamStore& a, ParamStore& b, Tensor Param::* tensor) {
  for (Param* param : a.all()) {
    const Tensor x = (*param).*tensor;
    const Tensor y = (*b.find(param->spec.name)).*tensor;
    if (bytes_in(a.device(), x) != bytes_in(b.device(), y)) return false;
  }
  return true;
}

}  // namespace bev::test
