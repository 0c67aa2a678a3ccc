#include "device/trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/json.h"
#include "ops/make_device.h"

namespace bev {
namespace {

void trace_two_ops(Trace& trace, Stream stream) {
  trace.begin("first", stream);
  trace.end(stream);
  trace.begin("second", stream);
  trace.end(stream);
}

void expect_in_order(const std::vector<OpSpan>& spans) {
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_STREQ(spans[0].op, "first");
  EXPECT_STREQ(spans[1].op, "second");
  EXPECT_GE(spans[0].begin, 0);
  EXPECT_GE(spans[0].end, spans[0].begin);
  EXPECT_GE(spans[1].end, spans[1].begin);
  EXPECT_GE(spans[1].begin, spans[0].begin);
}

TEST(TimerEvent, MeasuresWhatLiesBetween) {
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
  TimerEvent first(*device, device->compute_stream());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const TimerEvent second(*device, device->compute_stream());
  EXPECT_GE(second.seconds_since(first), 0.005);
  const TimerEvent moved = std::move(first);
  EXPECT_GE(second.seconds_since(moved), 0.005);
  EXPECT_FALSE(TimerEvent().present());
  EXPECT_TRUE(moved.present());
}

TEST(Trace, SpansInTheOrderOfIssue) {
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
  Trace trace(*device);
  trace_two_ops(trace, device->compute_stream());
  expect_in_order(trace.spans());
  const Json json = Json::parse(trace.chrome_json());
  ASSERT_EQ(json.size(), 4u + 2u) << "the names of the streams, and the ops";
  EXPECT_EQ(json[5].at("name"), "second");
  EXPECT_EQ(json[5].at("tid"), 0);
}

TEST(Trace, StreamsShowForThemselves) {
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
  Trace trace(*device);
  trace.begin("all_reduce", device->comm_stream());
  trace.end(device->comm_stream());
  const Json json = Json::parse(trace.chrome_json());
  EXPECT_EQ(json[2].at("args").at("name"), "exchange");
  EXPECT_EQ(json[4].at("tid"), json[2].at("tid"));
}

// Timers go back to the device with their owner and are started again.
TEST(Trace, CudaTimersAreUsedAgain) {
  const std::string why = why_no_cuda();
  if (!why.empty()) GTEST_SKIP() << why;
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 0);
  for (int round = 0; round < 3; ++round) {
    Trace trace(*device);
    trace_two_ops(trace, device->compute_stream());
    expect_in_order(trace.spans());
  }
}

}  // namespace
}  // namespace bev
