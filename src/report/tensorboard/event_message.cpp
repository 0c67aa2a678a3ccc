#include "report/tensorboard/event_message.h"

#include <tensorboard_event.pb.h>

namespace bev {

namespace tb = bevatron::tensorboard;

std::string version_event(double time, const std::string& version) {
  tb::Event event;
  event.set_wall_time(time);
  event.set_file_version(version);
  return event.SerializeAsString();
}

std::string scalars_event(double time, int64_t x, std::span<const ScalarPoint> points) {
  tb::Event event;
  event.set_wall_time(time);
  event.set_step(x);
  tb::Summary& summary = *event.mutable_summary();
  for (const ScalarPoint& point : points) {
    tb::Point& value = *summary.add_value();
    value.set_tag(point.tag);
    value.set_simple_value(static_cast<float>(point.y));
  }
  return event.SerializeAsString();
}

std::string text_event(double time, int64_t x, const std::string& tag,
                       const std::string& markdown) {
  tb::Event event;
  event.set_wall_time(time);
  event.set_step(x);
  tb::Point& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  tb::Tensor& tensor = *value.mutable_tensor();
  tensor.set_dtype(tb::Tensor::STRING);
  tensor.mutable_tensor_shape()->add_dim()->set_size(1);
  tensor.add_string_val(markdown);
  return event.SerializeAsString();
}

}  // namespace bev
