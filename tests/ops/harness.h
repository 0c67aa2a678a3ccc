// The op harness. A test states an op once, as a callable that draws its arguments through a Trial,
// calls the op and names what is compared; the harness executes it on several devices, in several
// storage types and placements, and compares. Draws depend on the name and the logical index only,
// so every execution of one callable sees the same numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/format.h"
#include "device/exec.h"
#include "device/memory.h"
#include "ops/make_device.h"
#include "ops/op_table.h"

namespace bev::test {

// The element type of a tensor: the storage type of the run, its accumulation type, or a fixed
// type.
enum class Element : uint8_t { Value, Sum, F32, F64 };

// Where the elements are: `skew` elements after an aligned address, `gap` elements between rows.
struct Placement {
  int64_t gap = 0;
  int64_t skew = 0;
};
constexpr Placement kPacked{};
constexpr Placement kUnaligned{.gap = 5, .skew = 3};
constexpr Placement kSpaced{.gap = 16, .skew = 16};  // gaps, but every alignment is kept

// Large enough that the cpu device shares the work among three threads, which it does not for less
// than a few thousand elements each; no multiple of anything.
constexpr int64_t kSharedRows = 211, kSharedWidth = 257;

struct TrialSpec {
  DeviceKind kind = DeviceKind::Reference;
  int threads = 1;
  DType storage = DType::f64;
  DType exact_in = DType::f64;  // draws are rounded so that this type holds them exactly
  Placement placement{};
  bool deterministic = false;  // cuda: the device promises the same bits
  bool tuned = false;          // cuda: a separate device, which autotunes
};

struct Draw {
  double scale = 1;
  double offset = 0;
};

// How a compared tensor is bounded: by tolerance(its dtype, reduction, ops), relative to its
// largest element or to `magnitude` where that is larger: the size of the terms that may cancel.
struct Bound {
  int64_t reduction = 1;
  int ops = 1;
  double magnitude = 0;
};

// A tensor an op has produced.
struct Result {
  std::string name;
  std::vector<double> values;
  std::vector<std::byte> bytes;
  DType dtype;
  Bound bound;
};

// A device and its memory, kept for the process: making either takes longer than a case.
struct KeptDevice;

// One execution: owns the operands and remembers what is compared.
class Trial {
 public:
  explicit Trial(const TrialSpec& spec);
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  Exec& ex() { return exec_; }
  const TrialSpec& spec() const { return spec_; }
  DType dtype(Element element) const;

  // The same draws in f64 on the reference device: for arguments that come from another op.
  Trial truth() const;

  // An operand that is only read: drawn from a normal distribution, or given. The harness checks
  // that the op does not write it.
  ConstTensor input(const char* name, const Shape& shape, Element element = Element::Value,
                    Draw draw = {});
  ConstTensor given(const Shape& shape, std::span<const double> values,
                    Element element = Element::Value);
  ConstTensor integers(const Shape& shape, DType dtype, std::span<const int64_t> values);

  // An operand that is read and written.
  Tensor updated(const char* name, const Shape& shape, Element element = Element::Value,
                 Draw draw = {});
  Tensor updated_given(const Shape& shape, std::span<const double> values,
                       Element element = Element::Value);
  Tensor updated_integers(const Shape& shape, DType dtype, std::span<const int64_t> values);
  // An operand that is written; it starts as NaN.
  Tensor blank(const Shape& shape, Element element = Element::Value);

  void compare(const char* name, const Tensor& view, Bound bound = {});
  // blank() and compare() in one.
  Tensor output(const char* name, const Shape& shape, Element element = Element::Value,
                Bound bound = {});

  std::vector<double> read(const ConstTensor& t) const;
  // Everything compared. Also checks that nothing was written outside the written tensors.
  std::vector<Result> results() const;

 private:
  struct Slot {
    Buffer buffer;  // of its own on host devices
    std::byte* data;
    Tensor tensor;
    std::vector<std::byte> image;  // the content before the op
    bool written;
  };
  Slot& make_slot(size_t bytes, bool written);
  Tensor place(const Shape& shape, DType dtype, std::span<const double> values, bool written);
  // The elements of a view in logical order.
  std::vector<std::byte> bytes_in(const ConstTensor& t) const;
  std::vector<double> drawn(const char* name, int64_t count, Element element, Draw draw) const;
  std::vector<double> make_draws(const char* name, int64_t count, Element element, Draw draw) const;

  TrialSpec spec_;
  KeptDevice& kept_;
  Device& device_;
  ArenaScope operands_;
  Arena none_;
  Exec exec_;
  std::deque<Slot> slots_;
  struct Compared {
    std::string name;
    Tensor view;
    Bound bound;
  };
  std::vector<Compared> compared_;
};

using Case = std::function<void(Trial&)>;

// All: every type of the device, each against a reference with draws of that type. Alike (cuda):
// one reference for all of them, with draws that every type holds, and packed only: for large
// cases.
enum class Storage : uint8_t { All, F32Only, Alike };

// Runs the case on the cpu device against the reference, f32 and bf16, packed and unaligned, and
// with 1, 2 and 3 threads, which must agree to the bit.
void expect_cpu_agrees(const std::string& what, const Case& body, Storage storage = Storage::All);

// Repeats: two runs give the same bits. Varies: libraries may add in any order. Deterministic: the
// device is told to repeat, which other kernels may serve; two runs give the same bits. Tuned: what
// autotuning found fastest serves.
enum class Policy : uint8_t { Repeats, Varies, Deterministic, Tuned };

// Runs the case on the cuda device against the reference, f32, bf16 and f16, in all placements.
// Skips the test where no GPU is.
void expect_cuda_agrees(const std::string& what, const Case& body, Storage storage = Storage::All,
                        Policy policy = Policy::Repeats);

// Whether there is no GPU; the running test is then marked as skipped, with the reason. For tests
// that make their own trials.
bool no_gpu();

// Compares every element of `gradient` with central differences of `loss` in `input`. f64 on the
// reference device only.
void expect_gradient(const char* name, const Tensor& input, const ConstTensor& gradient,
                     const std::function<double()>& loss);

// A run for expect_gradient: f64, with gaps between rows.
inline TrialSpec gradient_run() { return {.placement = kUnaligned}; }

// sum of a * b. f64, same shape.
double inner(const ConstTensor& a, const ConstTensor& b);

// A writable view of an operand the run owns as read-only: for the input of a difference quotient.
Tensor writable(const ConstTensor& t);

// count integers in [low, high), by seed.
std::vector<int64_t> random_integers(uint64_t seed, int64_t count, int64_t low, int64_t high);
// The logical rows of `count` rows, in no order.
ConstTensor logical_rows(Trial& run, int64_t count);

// "a=1 b=2 ..." for SCOPED_TRACE.
template <class... Args>
std::string label(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(text, std::forward<Args>(args)...);
}

}  // namespace bev::test
