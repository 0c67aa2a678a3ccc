#include "infer/embedding/corpus_embedding.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "comm/thread_communicator.h"
#include "infer/embedding/embedding_file.h"
#include "ops/make_device.h"
#include "support/expect_error.h"
#include "unit/infer/tiny_berts.h"

namespace bev {
namespace {

using test::expect_error;
using test::StoredBert;
using test::TemporaryDirectory;

// Ends a run at a place where a crash could.
struct Crash {};

class CorpusEmbeddingTest : public ::testing::Test {
 protected:
  CorpusEmbeddingTest() {
    const std::array<std::string, 6> words{"paris", "is", "the capital", "of", "france .", "a"};
    for (size_t i = 0; i < 23; ++i) {
      for (size_t at = 0; at < i * 5 % 7; ++at) bytes_ += words[(i + at * at) % 6] + " ";
      bytes_ += "\n";
    }
    work_ = {.output = dir_ / "e.npy", .length = 9, .window = 4};
  }

  // Ranks that are copies of the model; throws after `crash_after` rows.
  CorpusProgress run(int copies = 1, int64_t crash_after = INT64_MAX, int tensor = 1) {
    InferenceSetup use{.device = {.kind = device_, .threads = 1}, .sequences = 3, .length = 9};
    use.parallel.ranks = copies * tensor;
    use.parallel.tensor = tensor;
    CorpusProgress progress;
    run_ranks(copies * tensor, std::chrono::seconds(60), [&](Communicator& world) {
      const auto device = make_device(use.device);
      const ModelFolder folder = stored_.folder();
      LoadedModel model(folder, use, *device, world);
      const CorpusText corpus(bytes_, "t", {});
      int64_t last = -1;
      const CorpusProgress own = embed_corpus(model, folder, corpus, work_, [&](int64_t rows) {
        if (rows > crash_after) throw Crash();
        if (world.rank() != 0) return;
        EXPECT_GE(rows, last);
        EXPECT_LE(rows, 23);
        last = rows;
      });
      if (world.rank() == 0) progress = own;
    });
    return progress;
  }

  void crash(int64_t after) { EXPECT_THROW(run(1, after), Crash); }

  // The array and its description.
  std::string array() const { return read_text(work_.output) + read_text(dir_ / "e.npy.jsonl"); }
  std::filesystem::path part() const { return dir_ / "e.npy.part"; }
  std::filesystem::path log() const { return dir_ / "e.npy.part.jsonl"; }
  bool has_part() const { return std::filesystem::exists(part()); }

  // What array() is of a run that was not interrupted, in an otherwise empty folder.
  std::string expected() {
    run();
    std::string bytes = array();
    std::filesystem::remove(work_.output);
    std::filesystem::remove(dir_ / "e.npy.jsonl");
    return bytes;
  }

  StoredBert stored_;
  TemporaryDirectory dir_;
  DeviceKind device_ = DeviceKind::Reference;
  std::string bytes_;
  CorpusEmbedding work_;
};

// Fails when rows of a window land at those of another, or are left out.
TEST_F(CorpusEmbeddingTest, RowsAreTheEmbeddingsOfTheTexts) {
  const CorpusProgress progress = run();
  EXPECT_EQ(progress.kept_rows, 0);
  EXPECT_FALSE(has_part());
  EXPECT_FALSE(std::filesystem::exists(log()));
  LoadedModel model = stored_.load(3, 9);
  EncoderPass pass(model);
  BertText text(stored_.folder());
  std::vector<EncoderInput> inputs;
  int64_t cut_texts = 0, cut_tokens = 0;
  CorpusText(bytes_, "t", {}).read(0, 23, [&](int64_t, std::string_view line) {
    EmbeddingInput input = embedding_input(text, text.tokens(line), 9);
    cut_texts += input.cut > 0;
    cut_tokens += input.cut;
    inputs.push_back(input.input);
  });
  EXPECT_GT(cut_texts, 0);
  EXPECT_EQ(progress.cut_texts, cut_texts);
  EXPECT_EQ(progress.cut_tokens, cut_tokens);
  const auto vectors = embed_texts(pass, inputs, {});
  const EmbeddingFile file(work_.output);
  ASSERT_EQ(file.rows(), 23);
  for (int64_t row = 0; row < 23; ++row) {
    const std::vector<float>& vector = vectors[static_cast<size_t>(row)];
    for (int64_t i = 0; i < file.width(); ++i)
      EXPECT_NEAR(file.read(row, row + 1)[static_cast<size_t>(i)], vector[static_cast<size_t>(i)],
                  1e-6);
  }
}

// Fails when a resumed run computes what is there, loses it, or trusts a window that was not
// finished.
TEST_F(CorpusEmbeddingTest, AKilledRunIsResumed) {
  const std::string whole = expected();
  for (const int64_t after : {0, 3, 4, 9, 22}) {
    crash(after);
    EXPECT_TRUE(has_part());
    EXPECT_FALSE(std::filesystem::exists(work_.output));
    const CorpusProgress progress = run();
    EXPECT_EQ(progress.kept_rows, after / 4 * 4);
    EXPECT_GT(progress.cut_texts, 0);
    EXPECT_EQ(array(), whole);
    std::filesystem::remove(work_.output);
  }
}

// Fails when ranks write the windows of others, or a run is only resumed on as many ranks.
TEST_F(CorpusEmbeddingTest, AnyNumberOfRanksWritesTheSameFile) {
  const std::string whole = expected();
  for (const int copies : {2, 3, 7}) {
    run(copies);
    EXPECT_EQ(array(), whole) << copies;
    std::filesystem::remove(work_.output);
  }
  crash(9);
  EXPECT_EQ(run(2).kept_rows, 8);
  EXPECT_EQ(array(), whole);
}

TEST_F(CorpusEmbeddingTest, CopiesMayHaveTensorRanks) {
  run(2, INT64_MAX, 2);
  const EmbeddingFile two(work_.output);
  std::filesystem::rename(work_.output, dir_ / "two.npy");
  run();
  const EmbeddingFile one(work_.output);
  for (int64_t i = 0; i < 23 * one.width(); ++i)
    ASSERT_NEAR(two.read(0, 23)[static_cast<size_t>(i)], one.read(0, 23)[static_cast<size_t>(i)],
                1e-6);
}

// The end of the log may be half a line, and rows may be lost with the machine's memory.
TEST_F(CorpusEmbeddingTest, DamagedWindowsAreComputedAgain) {
  const std::string whole = expected();
  crash(13);
  std::ofstream(log(), std::ios::app) << "{\"checksum\":\"01";
  EXPECT_EQ(run().kept_rows, 12);
  EXPECT_EQ(array(), whole);
  std::filesystem::remove(work_.output);

  crash(13);
  {
    std::fstream file(part(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(npy_header(23, 16).size() + 5 * 16 * sizeof(float)));
    file.write("oops", 4);
  }
  EXPECT_EQ(run().kept_rows, 4);
  EXPECT_EQ(array(), whole);
  std::filesystem::remove(work_.output);

  crash(13);
  std::filesystem::remove(part());
  EXPECT_EQ(run().kept_rows, 0);
  EXPECT_EQ(array(), whole);
  std::filesystem::remove(work_.output);

  crash(13);
  std::filesystem::resize_file(log(), 20);
  EXPECT_EQ(run().kept_rows, 0);
  EXPECT_EQ(array(), whole);
}

// Fails when rows of two models or texts are mixed.
TEST_F(CorpusEmbeddingTest, AnotherRunIsRefused) {
  crash(13);
  work_.rule.pooling = Pooling::Cls;
  expect_error(ErrorKind::Usage, "holds other embeddings: pooling \"mean\" (expected \"cls\")\n",
               [&] { run(); });
  work_.rule.pooling = Pooling::Mean;
  work_.length = 7;
  expect_error(ErrorKind::Usage, "length 9 (expected 7)", [&] { run(2); });
  work_.length = 9;
  const std::string text = bytes_;
  bytes_[bytes_.find('p')] = 'b';
  expect_error(ErrorKind::Usage, "other embeddings: text \"", [&] { run(); });
  bytes_ = text;
  device_ = DeviceKind::Cpu;
  expect_error(ErrorKind::Usage, "other embeddings: precision \"f64\" (expected \"f32\")",
               [&] { run(); });
  device_ = DeviceKind::Reference;
  std::ofstream(stored_.folder().weights / "config.json", std::ios::app) << " ";
  expect_error(ErrorKind::Usage, "other embeddings: model \"", [&] { run(); });
}

TEST_F(CorpusEmbeddingTest, DescribesWhatItWrote) {
  run();
  const std::optional<Json> found = read_embedding_description(work_.output);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)["rows"], 23);
  EXPECT_EQ((*found)["width"], 16);
  EXPECT_EQ((*found)["pooling"], "mean");
  EXPECT_EQ((*found)["tower"], "context");
  EXPECT_FALSE(read_embedding_description(dir_ / "other.npy"));
}

// Fails when two runs write a file at the same time.
TEST_F(CorpusEmbeddingTest, AFileThatAnotherRunWrites) {
  crash(3);
  const int other = ::open(part().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  expect_error(ErrorKind::Data, "is being written by another run", [&] { run(); });
  ::close(other);
  EXPECT_EQ(run().kept_rows, 0);
}

TEST_F(CorpusEmbeddingTest, FilesThatCannotBeWritten) {
  work_.output = dir_ / "none/e.npy";
  expect_error(ErrorKind::Data, "cannot write", [&] { run(); });
}

}  // namespace
}  // namespace bev
