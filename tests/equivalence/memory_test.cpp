// The plan is the run: arenas have exactly the planned size, and a step allocates nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/error.h"
#include "data/token_file_writer.h"
#include "data/training_data.h"
#include "support/small_run.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"

namespace {
std::atomic<int64_t> heap_allocations{0};
}

// Counts every allocation of this executable. Not inlined: g++ would then see malloc's memory given
// to delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  heap_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
// The sanitizer has its own where there is none here, whose memory free() would not take.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  heap_allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes != 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace bev::test {
namespace {

// Of models with two blocks: each for itself, both together, the first alone.
const RecomputeConfig kRecomputations[] = {
    {},
    {.granularity = Recompute::Selective},
    {.granularity = Recompute::Full},
    {.granularity = Recompute::Full, .method = RecomputeMethod::Uniform, .layers = 2},
    {.granularity = Recompute::Full, .method = RecomputeMethod::Block, .layers = 1},
};

class Memory : public ::testing::TestWithParam<TinyModel> {
 protected:
  static Config on(DeviceKind kind, const RecomputeConfig& recompute) {
    Config c = GetParam().config;
    c.device.kind = kind;
    c.device.threads = 2;
    c.recompute = recompute;
    return c;
  }
};

// Fault that fails it: an allocation in a module whose size differs between the null device and the
// run, for example one that depends on the content of a tensor.
TEST_P(Memory, RunUsesThePlanToTheByte) {
  for (const DeviceKind kind : {DeviceKind::Reference, DeviceKind::Cpu}) {
    for (const RecomputeConfig& recompute : kRecomputations) {
      SmallRun run(on(kind, recompute));
      run.train(2);
      EXPECT_EQ(run.assembly.executor.peaks().keep, run.plan.arenas.keep);
      EXPECT_EQ(run.assembly.executor.peaks().scratch, run.plan.arenas.scratch);
      EXPECT_EQ(run.assembly.executor.peaks().recompute, run.plan.arenas.recompute);
      EXPECT_EQ(run.device->allocated_bytes(), run.plan.memory_bytes());
    }
  }
}

// One byte less and the run stops, naming the arena.
TEST_P(Memory, OneByteTooFewIsAnError) {
  const Config config = on(DeviceKind::Cpu, {});
  const Plan plan = dry_run(config);
  for (const bool scratch : {false, true}) {
    ArenaSizes sizes = plan.arenas;
    (scratch ? sizes.scratch : sizes.keep) -= 1;
    const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 2);
    TrainingState assembly(config, *device, sizes);
    assembly.initialize();
    StepRunner stepper(assembly,
                       lr_schedule_from(config, plan.batch.global_batch, plan.iterations));
    DataLoader loader(std::make_shared<MockDataset>(plan.model.vocab, 7),
                      DataLoader::shape_of(config, assembly.spec.batch));
    try {
      stepper.step(loader.next());
      FAIL() << "the step fits into less than was planned";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Internal);
      EXPECT_NE(std::string(error.what()).find(scratch ? "scratch" : "activations"),
                std::string::npos);
    }
  }
}

// Fault that fails it: a std::vector or std::string made inside an op or a module. (The reference
// ops are written to be read and may use a vector for a row.)
TEST_P(Memory, StepsAllocateNothing) {
  for (const RecomputeConfig& recompute : kRecomputations) {
    SmallRun run(on(DeviceKind::Cpu, recompute));
    run.stepper.step(run.loader.next());
    const int64_t heap = heap_allocations.load();
    const size_t device = run.device->allocations();
    for (int i = 0; i < 3; ++i) run.stepper.step(run.loader.next());
    EXPECT_EQ(heap_allocations.load() - heap, 0);
    EXPECT_EQ(run.device->allocations() - device, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Memory, ::testing::ValuesIn(tiny_models()),
                         [](const auto& model) { return model.param.name; });

// Whatever the order: samples of a blend are read into batches that exist, also in pieces and where
// an epoch of a shuffled order begins.
TEST(SampleMemory, ReadingAllocatesNothing) {
  const TemporaryDirectory dir;
  for (const char* name : {"a", "b"}) {
    TokenFileWriter writer(dir / name, TokenType::u16);
    for (int i = 0; i < 20; ++i) {
      writer.add_sequence(std::vector<int32_t>(10, 3));
      writer.end_document();
    }
    writer.commit();
  }
  Config config = tiny_gpt();
  config.data.mock = false;
  config.data.path = {"0.3", (dir / "a").string(), "0.7", (dir / "b").string()};
  for (const SampleOrder order : {SampleOrder::Arithmetic, SampleOrder::Megatron}) {
    for (const bool mapped : {true, false}) {
      config.data.order = order;
      config.data.mmap = mapped;
      config.data.sampler =
          order == SampleOrder::Megatron ? SamplerKind::Cyclic : SamplerKind::Single;
      const TrainingData data = open_training_data(config);
      HostBatch batch;
      batch.resize(2, 7, false);
      const int64_t before = heap_allocations.load();
      for (int64_t i = 0; i < 200; ++i) data.train->read(i, batch, i % 2);
      EXPECT_EQ(heap_allocations.load(), before);
    }
  }
}

}  // namespace
}  // namespace bev::test
