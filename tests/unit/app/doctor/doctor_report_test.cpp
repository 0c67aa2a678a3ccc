#include <gtest/gtest.h>

#include "app/doctor/doctor.h"
#include "base/json.h"

namespace bev::app {
namespace {

// A machine with a GPU, as far as the reports need one.
Examination with_gpu() {
  Examination e;
  e.host.processor = "some processor";
  e.cuda = {.is_built = true, .built_with = 13000, .built_for = {"90-real"}};
  e.cuda.driver = "580.65.06";
  e.cuda.driver_cuda = 13000;
  e.cuda.cublaslt = {.name = "cuBLASLt", .path = "/lib/libcublasLt.so.13", .version = "13.1.0"};
  e.cuda.gpus.push_back({.index = 0,
                         .name = "NVIDIA H200",
                         .compute_capability = 90,
                         .multiprocessors = 132,
                         .memory_total = int64_t{140} << 30,
                         .memory_free = int64_t{139} << 30,
                         .clock_mhz = 345,
                         .max_clock_mhz = 1980,
                         .memory_clock_mhz = 3201,
                         .ecc = true,
                         .persistence = false});
  e.gpu = MeasuredDevice{.peak = {.flops = 700e12, .bandwidth = 4e12},
                         .transfers = TransferRates{.to_device = 55e9, .from_device = 54e9}};
  return e;
}

TEST(DoctorReport, TextNamesWhatWasFound) {
  const std::string text = doctor_text(with_gpu());
  for (const char* part :
       {"CUDA 13.0, code for 90-real", "580.65.06, for CUDA 13.0", "/lib/libcublasLt.so.13",
        "cuDNN     not found", "NVIDIA H200, sm_90, 132 multiprocessors", "139.00 GiB free",
        "345 of 1980 MHz, memory 3201 MHz, ECC on, persistence off",
        "700.00 TFLOP/s (71 % of 989.00 TFLOP/s), copies 4.00 TB/s", "memory 55.00 GB/s",
        "training runs on NVIDIA H200"}) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in\n" << text;
  }
}

TEST(DoctorReport, AFaultDecides) {
  Examination e = with_gpu();
  e.findings.push_back({Severity::Fault, "gpu-fails", "it fails", "repair it"});
  const std::string text = doctor_text(e);
  EXPECT_NE(text.find("fault     it fails; repair it\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--device cpu trains without it"), std::string::npos) << text;
  const Json json = parse_json(doctor_json(e), "report");
  EXPECT_EQ(json["device"], "");
  EXPECT_EQ(json["findings"][0]["code"], "gpu-fails");
  EXPECT_EQ(json["findings"][0]["severity"], "fault");
  EXPECT_EQ(json["findings"][0]["fix"], "repair it");
  EXPECT_EQ(json["findings"][0]["mend"], "repair it");  // until 0.2
}

TEST(DoctorReport, JsonHasWhatTheTextHas) {
  const Json json = parse_json(doctor_json(with_gpu()), "report");
  EXPECT_EQ(json["device"], "cuda");
  EXPECT_EQ(json["cuda"]["built_with"], "13.0");
  EXPECT_EQ(json["cuda"]["gpus"][0]["name"], "NVIDIA H200");
  EXPECT_EQ(json["cuda"]["gpus"][0]["persistence"], false);
  EXPECT_EQ(json["cuda"]["libraries"]["cublaslt"]["version"], "13.1.0");
  EXPECT_EQ(json["cuda"]["libraries"]["cudnn"]["found"], false);
  EXPECT_EQ(json["cuda"]["measured"]["gemm_flops_per_second"], 700e12);
  EXPECT_EQ(json["cuda"]["measured"]["product_flops_per_second"], 700e12);  // until 0.2
  EXPECT_FALSE(json["cpu"].contains("measured"));
}

TEST(DoctorReport, WithoutAGpu) {
  const Examination e;
  EXPECT_NE(doctor_text(e).find("no GPU: training runs on the CPU"), std::string::npos);
  EXPECT_NE(doctor_text(e).find("without CUDA"), std::string::npos);
  EXPECT_EQ(parse_json(doctor_json(e), "report")["device"], "cpu");
}

}  // namespace
}  // namespace bev::app
