#include "bench/loader_bench.h"

#include <unistd.h>

#include "base/format.h"
#include "base/json.h"
#include "base/philox.h"
#include "base/text_table.h"
#include "data/megatron/megatron_dataset.h"
#include "data/token_dataset.h"
#include "data/token_file_writer.h"

namespace bev {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kVocab = 50257, kSequences = 8;

// A folder that goes away.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / format("bevatron-bench-{}", ::getpid())) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

// Documents of some hundred tokens.
void write_tokens(const fs::path& prefix, TokenType type, int64_t tokens) {
  TokenFileWriter writer(prefix, type);
  std::vector<int32_t> document;
  for (uint64_t number = 0; writer.tokens() < tokens; ++number) {
    const PhiloxBlock draw = philox(0, 0, number);
    document.resize(100 + draw[0] % 1000);
    for (size_t i = 0; i < document.size(); ++i)
      document[i] = static_cast<int32_t>((draw[1] + i * draw[2]) % kVocab);
    writer.add_sequence(document);
    writer.end_document();
  }
  writer.commit();
}

LoaderBench time_samples(std::string name, const Dataset& samples, int64_t length, double seconds) {
  HostBatch batch;
  batch.resize(kSequences, length, false);
  int64_t position = 0;
  LoaderBench result{.name = std::move(name), .tokens = batch.tokens_count()};
  result.time = measure(
      [&] {
        for (int64_t at = 0; at < kSequences; ++at) samples.read(position++, batch, at);
      },
      seconds);
  return result;
}

}  // namespace

std::vector<LoaderBench> bench_loader(int64_t length, int64_t file_tokens, double seconds_each) {
  const Scratch scratch;
  std::vector<LoaderBench> results;
  for (const TokenType type : {TokenType::u16, TokenType::i32}) {
    const fs::path prefix = scratch / name_of(type).data();
    write_tokens(prefix, type, file_tokens);
    for (const TokenAccess access : {TokenAccess::Mapped, TokenAccess::Pieces}) {
      const auto file = std::make_shared<const TokenFile>(prefix, access);
      const SequenceRange all{0, file->index().sequences()};
      const std::string how =
          format("{}, {}", name_of(type), access == TokenAccess::Mapped ? "mapped" : "in pieces");
      const TokenDataset arithmetic(file, all, {.sequence = length, .vocab = kVocab});
      results.push_back(time_samples("arithmetic, " + how, arithmetic, length, seconds_each));
      const MegatronDataset megatron(
          file, {.index = {.range = all, .sequence = length}, .vocab = kVocab});
      results.push_back(time_samples("megatron, " + how, megatron, length, seconds_each));
    }
  }
  return results;
}

std::string loader_bench_table(const std::vector<LoaderBench>& results) {
  TextTable row("{:<34}{:>16.1f}{:>14.1f}");
  row("order, ids, reading", "M tokens/s", "us/batch");
  for (const LoaderBench& r : results)
    row(r.name, 1e-6 * r.tokens_per_second(), 1e6 * r.time.median);
  return row.text;
}

std::string loader_bench_json(const std::vector<LoaderBench>& results) {
  Json list = Json::array();
  for (const LoaderBench& r : results)
    list.push_back({{"name", r.name},
                    {"tokens", r.tokens},
                    {"seconds", r.time.median},
                    {"tokens_per_second", r.tokens_per_second()}});
  return Json{{"loader", std::move(list)}}.dump(2);
}

}  // namespace bev
