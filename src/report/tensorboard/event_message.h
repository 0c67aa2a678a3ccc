// The messages of TensorBoard's event files, as bytes. The one door to Protobuf.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace bev {

struct ScalarPoint {
  std::string tag;
  double y = 0;  // written with the precision of a float
};

// `time` in seconds since 1970; `version` such as "brain.Event:2".
std::string version_event(double time, const std::string& version);
// All with the same x. Without points: an event that has a step and nothing else.
std::string scalars_event(double time, int64_t x, std::span<const ScalarPoint> points);
// Markdown, for the page of texts.
std::string text_event(double time, int64_t x, const std::string& tag, const std::string& markdown);

}  // namespace bev
