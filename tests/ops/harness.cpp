#include "ops/harness.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>

#include "base/philox.h"
#include "device/device.h"
#include "support/tolerance.h"

namespace bev::test {

namespace {

constexpr int64_t kTail = 16;           // guard elements after the last
constexpr auto kNan = std::byte{0xFF};  // all bits set is a NaN in every floating type
constexpr uint64_t kSeed = 20240229;
constexpr size_t kScratch = size_t{64} << 20;

// For tools that watch every access: no f16, no gaps that keep alignment, each case once.
bool is_brief() { return std::getenv("BEVATRON_TEST_BRIEF") != nullptr; }

// What the largest case needs; tools that watch every byte are quicker with less.
size_t gpu_operand_bytes() {
  const char* mebibytes = std::getenv("BEVATRON_TEST_GPU_MIB");
  return (mebibytes != nullptr ? std::stoull(mebibytes) : 3072) << 20;
}

}  // namespace

struct KeptDevice {
  KeptDevice(DeviceKind kind, int threads, bool deterministic)
      : device(make_device(
            {.kind = kind, .threads = threads, .deterministic = deterministic, .cache = "off"})),
        scratch(*device, kScratch, "scratch"),
        operands(*device, device->is_asynchronous() ? gpu_operand_bytes() : 0, "operands") {
    if (!device->is_asynchronous()) return;
    // An op that takes its workspace for zeros is found out.
    ArenaScope scope(scratch);
    const std::vector<std::byte> nans(kScratch, kNan);
    const Tensor all = scratch.allocate({static_cast<int64_t>(kScratch)}, DType::u8, "all");
    device->upload(nans.data(), all.data, nans.size());
  }

  std::unique_ptr<Device> device;
  Arena scratch;
  Arena operands;  // of a GPU, where an allocation takes longer than a case; else empty
};

namespace {

// They go away before main() ends, while all that they are made of is still there.
class KeptDevices : public testing::Environment {
 public:
  KeptDevice& of(const TrialSpec& spec) {
    const int threads = spec.kind == DeviceKind::Cpu ? spec.threads : 1;
    auto& device = devices_[{spec.kind, threads, spec.deterministic, spec.tuned}];
    if (!device) device = std::make_unique<KeptDevice>(spec.kind, threads, spec.deterministic);
    return *device;
  }
  void TearDown() override { devices_.clear(); }

 private:
  std::map<std::tuple<DeviceKind, int, bool, bool>, std::unique_ptr<KeptDevice>> devices_;
};
auto* const kept_devices =
    static_cast<KeptDevices*>(testing::AddGlobalTestEnvironment(new KeptDevices));

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::f32: return static_cast<double>(static_cast<float>(value));
    case DType::bf16: return static_cast<double>(bf16(static_cast<float>(value)));
    case DType::f16: return static_cast<double>(f16(static_cast<float>(value)));
    default: return value;
  }
}

// Rounded to what both sides of a comparison hold exactly.
std::vector<double> exact(std::vector<double> values, Element element, DType exact_in) {
  const DType dtype = element == Element::Value ? exact_in
                      : element == Element::Sum ? accumulation_of(exact_in)
                      : element == Element::F32 ? DType::f32
                                                : DType::f64;
  for (double& value : values) value = rounded(value, dtype);
  return values;
}

void store(std::byte* at, DType dtype, double value) {
  const auto put = [&](const auto& v) { std::memcpy(at, &v, sizeof v); };
  switch (dtype) {
    case DType::f64: put(value); break;
    case DType::f32: put(static_cast<float>(value)); break;
    case DType::bf16: put(bf16(static_cast<float>(value))); break;
    case DType::f16: put(f16(static_cast<float>(value))); break;
    case DType::i64: put(static_cast<int64_t>(value)); break;
    case DType::i32: put(static_cast<int32_t>(value)); break;
    case DType::u8: put(static_cast<uint8_t>(value)); break;
  }
}

double load(const std::byte* at, DType dtype) {
  const auto get = [&]<class T>(T v) {
    std::memcpy(&v, at, sizeof v);
    return static_cast<double>(v);
  };
  switch (dtype) {
    case DType::f64: return get(double{});
    case DType::f32: return get(float{});
    case DType::bf16: return get(bf16{});
    case DType::f16: return get(f16{});
    case DType::i64: return get(int64_t{});
    case DType::i32: return get(int32_t{});
    case DType::u8: return get(uint8_t{});
  }
  return 0;
}

std::vector<double> values_of_bytes(const std::vector<std::byte>& bytes, DType dtype) {
  const size_t size = size_of(dtype);
  std::vector<double> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) values[i] = load(bytes.data() + i * size, dtype);
  return values;
}

// Calls body(offset in elements) for every element in logical order.
template <class Body>
void each_offset(const ConstTensor& t, Body body) {
  const int64_t elements = t.shape.elements();
  const int last = t.shape.rank() - 1;
  const int64_t width = elements > 0 ? t.shape[last] : 1;
  for (int64_t row = 0; row < elements / width; ++row) {
    int64_t rest = row, offset = 0;
    for (int dim = last - 1; dim >= 0; --dim) {
      offset += rest % t.shape[dim] * t.stride[static_cast<size_t>(dim)];
      rest /= t.shape[dim];
    }
    for (int64_t column = 0; column < width; ++column) body(offset + column);
  }
}

// Gaps between the rows of every dim but the last, whose elements are always adjacent.
Strides strides_with(const Shape& shape, int64_t gap) {
  Strides stride{};
  int64_t step = 1;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    stride[static_cast<size_t>(dim)] = step;
    step = step * shape[dim] + gap;
  }
  return stride;
}

double largest(const std::vector<double>& values) {
  double max = 0;
  for (const double value : values) {
    if (std::isfinite(value)) max = std::max(max, std::abs(value));
  }
  return max;
}

// Compares in the order of declaration; a tensor that is not finite where the reference is, fails.
void expect_close(const std::vector<Result>& expected, const std::vector<Result>& found,
                  DType storage) {
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Result& want = expected[i];
    const Result& got = found[i];
    // Numbers kept in f64 on every device come from values of the storage type.
    const DType dtype = got.dtype == DType::f64 ? accumulation_of(storage) : got.dtype;
    const double bound = tolerance(dtype, want.bound.reduction, want.bound.ops) *
                         std::max(largest(want.values), want.bound.magnitude);
    ASSERT_EQ(want.values.size(), got.values.size());
    double worst = 0;
    size_t where = 0;
    for (size_t e = 0; e < want.values.size(); ++e) {
      if (want.values[e] == got.values[e]) continue;  // also two infinities
      const double error = std::abs(want.values[e] - got.values[e]);
      if (std::isnan(error) || error > worst) {
        worst = std::isnan(error) ? HUGE_VAL : error;
        where = e;
      }
    }
    EXPECT_LE(worst, bound) << want.name << " (" << name_of(got.dtype) << ") element " << where
                            << ": " << got.values[where] << ", reference " << want.values[where];
  }
}

// `on`: what the bits would then depend on.
void expect_same_bits(const std::vector<Result>& one, const std::vector<Result>& other,
                      const std::string& on) {
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(one[i].bytes == other[i].bytes) << one[i].name << " depends on " << on;
  }
}

std::vector<Result> results_of(const Case& body, const TrialSpec& spec) {
  Trial run(spec);
  body(run);
  return run.results();
}

}  // namespace

Trial::Trial(const TrialSpec& spec)
    : spec_(spec),
      kept_(kept_devices->of(spec)),
      device_(*kept_.device),
      operands_(kept_.operands),
      none_(device_, 0, "none"),
      exec_{device_, device_.compute_stream(), none_, kept_.scratch, none_, nullptr} {}

Trial Trial::truth() const {
  return Trial({.exact_in = spec_.exact_in, .placement = spec_.placement});
}

DType Trial::dtype(Element element) const {
  switch (element) {
    case Element::Value: return spec_.storage;
    case Element::Sum: return accumulation_of(spec_.storage);
    case Element::F32: return DType::f32;
    case Element::F64: return DType::f64;
  }
  return DType::f64;
}

// The draws of a case are the same in every run of it: the latest are kept.
std::vector<double> Trial::drawn(const char* name, int64_t count, Element element,
                                 Draw draw) const {
  constexpr size_t kMostKept = 32;
  static std::deque<std::pair<std::string, std::vector<double>>> kept;
  const std::string label = fmt::format("{} {} {} {} {} {}", name, count, static_cast<int>(element),
                                        draw.scale, draw.offset, name_of(spec_.exact_in));
  for (const auto& [key, values] : kept) {
    if (key == label) return values;
  }
  if (kept.size() == kMostKept) kept.pop_front();
  kept.emplace_back(label, make_draws(name, count, element, draw));
  return kept.back().second;
}

std::vector<double> Trial::make_draws(const char* name, int64_t count, Element element,
                                      Draw draw) const {
  std::vector<double> values(static_cast<size_t>(count));
  const uint64_t key = mix_key(kSeed, name);
  std::array<float, 4> normals{};
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 4 == 0) normals = normals_of(philox(key, 0, i / 4));
    values[i] = draw.offset + draw.scale * static_cast<double>(normals[i % 4]);
  }
  return exact(std::move(values), element, spec_.exact_in);
}

Trial::Slot& Trial::make_slot(size_t bytes, bool written) {
  Slot slot{{}, nullptr, {}, std::vector<std::byte>(bytes, kNan), written};
  if (device_.is_asynchronous()) {
    slot.data = kept_.operands.allocate({static_cast<int64_t>(bytes)}, DType::u8, "operand").data;
  } else {
    slot.buffer = Buffer(device_, bytes, "operand");
    slot.data = slot.buffer.data();
  }
  return slots_.emplace_back(std::move(slot));
}

Tensor Trial::place(const Shape& shape, DType dtype, std::span<const double> values, bool written) {
  const auto size = static_cast<int64_t>(size_of(dtype));
  const Strides stride = strides_with(shape, shape.rank() > 1 ? spec_.placement.gap : 0);
  const int64_t extent = shape.elements() > 0 ? stride[0] * shape[0] : 0;
  const auto bytes = static_cast<size_t>((spec_.placement.skew + extent + kTail) * size);
  Slot& slot = make_slot(bytes, written);
  slot.tensor = {slot.data + spec_.placement.skew * size, dtype, shape, stride};
  size_t next = 0;
  if (!values.empty()) {
    each_offset(slot.tensor, [&](int64_t offset) {
      std::byte* at = slot.image.data() + (spec_.placement.skew + offset) * size;
      store(at, dtype, values[next++]);
    });
  }
  device_.upload(slot.image.data(), slot.data, bytes);
  return slot.tensor;
}

ConstTensor Trial::input(const char* name, const Shape& shape, Element element, Draw draw) {
  return place(shape, dtype(element), drawn(name, shape.elements(), element, draw), false);
}

ConstTensor Trial::given(const Shape& shape, std::span<const double> values, Element element) {
  const auto kept = exact({values.begin(), values.end()}, element, spec_.exact_in);
  return place(shape, dtype(element), kept, false);
}

ConstTensor Trial::integers(const Shape& shape, DType dtype, std::span<const int64_t> values) {
  const std::vector<double> kept(values.begin(), values.end());
  return place(shape, dtype, kept, false);
}

Tensor Trial::updated(const char* name, const Shape& shape, Element element, Draw draw) {
  return place(shape, dtype(element), drawn(name, shape.elements(), element, draw), true);
}

Tensor Trial::updated_given(const Shape& shape, std::span<const double> values, Element element) {
  const auto kept = exact({values.begin(), values.end()}, element, spec_.exact_in);
  return place(shape, dtype(element), kept, true);
}

Tensor Trial::updated_integers(const Shape& shape, DType dtype, std::span<const int64_t> values) {
  const std::vector<double> kept(values.begin(), values.end());
  return place(shape, dtype, kept, true);
}

Tensor Trial::blank(const Shape& shape, Element element) {
  return place(shape, dtype(element), {}, true);
}

void Trial::compare(const char* name, const Tensor& view, Bound bound) {
  compared_.push_back({name, view, bound});
}

Tensor Trial::output(const char* name, const Shape& shape, Element element, Bound bound) {
  const Tensor t = blank(shape, element);
  compare(name, t, bound);
  return t;
}

std::vector<std::byte> Trial::bytes_in(const ConstTensor& t) const {
  const int64_t elements = t.shape.elements();
  const auto size = size_of(t.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(elements) * size);
  if (elements == 0) return bytes;
  int64_t last = 0;
  for (int dim = 0; dim < t.shape.rank(); ++dim) {
    last += (t.shape[dim] - 1) * t.stride[static_cast<size_t>(dim)];
  }
  std::vector<std::byte> extent(static_cast<size_t>(last + 1) * size);
  device_.compute_stream().synchronize();
  device_.download(t.data, extent.data(), extent.size());
  size_t next = 0;
  each_offset(t, [&](int64_t offset) {
    std::memcpy(bytes.data() + next, extent.data() + static_cast<size_t>(offset) * size, size);
    next += size;
  });
  return bytes;
}

std::vector<double> Trial::read(const ConstTensor& t) const {
  return values_of_bytes(bytes_in(t), t.dtype);
}

std::vector<Result> Trial::results() const {
  device_.compute_stream().synchronize();
  for (const Slot& slot : slots_) {
    std::vector<std::byte> now(slot.image.size()), before = slot.image;
    device_.download(slot.data, now.data(), now.size());
    if (slot.written) {
      const auto size = size_of(slot.tensor.dtype);
      each_offset(slot.tensor, [&](int64_t offset) {
        const size_t at = static_cast<size_t>(spec_.placement.skew + offset) * size;
        std::memcpy(before.data() + at, now.data() + at, size);
      });
    }
    EXPECT_TRUE(now == before) << "an operand of shape " << to_string(slot.tensor.shape)
                               << " was written " << (slot.written ? "outside its elements" : "");
  }
  std::vector<Result> results;
  for (const Compared& c : compared_) {
    std::vector<std::byte> bytes = bytes_in(c.view);
    std::vector<double> values = values_of_bytes(bytes, c.view.dtype);
    results.push_back({c.name, std::move(values), std::move(bytes), c.view.dtype, c.bound});
  }
  return results;
}

void expect_cpu_agrees(const std::string& what, const Case& body, Storage storage) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (storage == Storage::F32Only && dtype != DType::f32) continue;
    for (const Placement placement : {kPacked, kUnaligned}) {
      SCOPED_TRACE(
          fmt::format("{} in {}{}", what, name_of(dtype), placement.skew > 0 ? ", unaligned" : ""));
      const auto reference = results_of(body, {.exact_in = dtype, .placement = placement});
      TrialSpec spec{DeviceKind::Cpu, 1, dtype, dtype, placement};
      const auto alone = results_of(body, spec);
      expect_close(reference, alone, dtype);
      for (const int threads : {2, 3}) {
        spec.threads = threads;
        expect_same_bits(alone, results_of(body, spec),
                         fmt::format("the number of threads: 1 and {}", threads));
      }
    }
  }
}

void expect_cuda_agrees(const std::string& what, const Case& body, Storage storage, Policy policy) {
  if (no_gpu()) return;
  const bool alike = storage == Storage::Alike, brief = is_brief();
  if (brief && policy == Policy::Deterministic) return;
  std::vector<Result> reference;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    if (storage == Storage::F32Only && dtype != DType::f32) continue;
    if (brief && dtype == DType::f16) continue;
    // f16 holds every bf16 number that matters beside draws of order 1.
    const DType exact_in = alike ? DType::bf16 : dtype;
    if (reference.empty() || !alike) reference = results_of(body, {.exact_in = exact_in});
    for (const Placement placement : {kPacked, kUnaligned, kSpaced}) {
      if ((alike && placement.gap > 0) || (brief && placement.gap == kSpaced.gap)) continue;
      SCOPED_TRACE(fmt::format("{} in {}, gap {}", what, name_of(dtype), placement.gap));
      const TrialSpec spec{.kind = DeviceKind::Cuda,
                           .storage = dtype,
                           .exact_in = exact_in,
                           .placement = placement,
                           .deterministic = policy == Policy::Deterministic,
                           .tuned = policy == Policy::Tuned};
      if (spec.tuned) {
        AutotuneScope autotune(*kept_devices->of(spec).device);
        results_of(body, spec);
        autotune.finish();
      }
      const auto once = results_of(body, spec);
      expect_close(reference, once, dtype);
      if (!brief && (policy == Policy::Repeats || policy == Policy::Deterministic))
        expect_same_bits(once, results_of(body, spec), "the run");
    }
  }
}

bool no_gpu() {
  static const std::string why = why_no_cuda();
  if (!why.empty() && !testing::Test::IsSkipped()) {
    [] { GTEST_SKIP() << why; }();
  }
  return !why.empty();
}

void expect_gradient(const char* name, const Tensor& input, const ConstTensor& gradient,
                     const std::function<double()>& loss) {
  constexpr double kStep = 1e-5, kRelative = 1e-6;
  auto* x = reinterpret_cast<double*>(input.data);
  const auto* dx = reinterpret_cast<const double*>(gradient.data);
  std::vector<double> slopes, stated;
  each_offset(input, [&](int64_t offset) {
    const double kept = x[offset];
    x[offset] = kept + kStep;
    const double up = loss();
    x[offset] = kept - kStep;
    const double down = loss();
    x[offset] = kept;
    slopes.push_back((up - down) / (2 * kStep));
  });
  each_offset(gradient, [&](int64_t offset) { stated.push_back(dx[offset]); });
  ASSERT_EQ(slopes.size(), stated.size());
  const double bound = kRelative * std::max(largest(slopes), 1e-3);
  for (size_t i = 0; i < slopes.size(); ++i) {
    EXPECT_LE(std::abs(slopes[i] - stated[i]), bound)
        << "gradient of " << name << ", element " << i << ": " << stated[i]
        << ", difference quotient " << slopes[i];
  }
}

double inner(const ConstTensor& a, const ConstTensor& b) {
  double sum = 0;
  std::vector<int64_t> offsets;
  each_offset(b, [&](int64_t offset) { offsets.push_back(offset); });
  size_t next = 0;
  each_offset(a, [&](int64_t offset) {
    sum += reinterpret_cast<const double*>(a.data)[offset] *
           reinterpret_cast<const double*>(b.data)[offsets[next++]];
  });
  return sum;
}

Tensor writable(const ConstTensor& t) {
  return {const_cast<std::byte*>(t.data), t.dtype, t.shape, t.stride};
}

std::vector<int64_t> random_integers(uint64_t seed, int64_t count, int64_t low, int64_t high) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  const auto range = static_cast<uint64_t>(high - low);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = low + static_cast<int64_t>(philox(mix_key(kSeed, seed), 1, i)[0] % range);
  }
  return values;
}

ConstTensor logical_rows(Trial& run, int64_t count) {
  // Beyond 32 bits, so that a row narrowed on the way is seen.
  return run.integers({count}, DType::i64,
                      random_integers(77, count, int64_t{1} << 33, (int64_t{1} << 33) + 1000000));
}

}  // namespace bev::test
