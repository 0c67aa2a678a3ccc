#include "infer/embedding/corpus_embedding.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/descriptor.h"
#include "base/integer.h"
#include "base/json_fields.h"
#include "checkpoint/checksum.h"
#include "checkpoint/manifest.h"
#include "infer/embedding/embedding_file.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

fs::path part_of(const fs::path& output) { return output.string() + ".part"; }
fs::path log_of(const fs::path& array) { return array.string() + ".jsonl"; }

[[noreturn]] void fail_to_write(const fs::path& path) {
  throw Error(ErrorKind::Data, format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

Descriptor open_to_write(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.is_open()) fail_to_write(path);
  return file;
}

// The array of an unfinished file; all ranks write their rows.
class PartialArray {
 public:
  PartialArray(const fs::path& path, int64_t rows, int64_t width)
      : path_(path),
        file_(open_to_write(path)),
        header_(npy_header(rows, width)),
        row_bytes_(static_cast<size_t>(width) * sizeof(float)),
        bytes_(header_.size() + static_cast<size_t>(rows) * row_bytes_) {}

  // Data error: another process has done so, or has renamed the file since it was opened.
  void lock() const {
    struct stat opened{}, named{};
    const bool is_locked = ::flock(file_.get(), LOCK_EX | LOCK_NB) == 0 &&
                           ::fstat(file_.get(), &opened) == 0 &&
                           ::stat(path_.c_str(), &named) == 0 && opened.st_ino == named.st_ino;
    BEV_CHECK(is_locked, Data,
              "{} is being written by another run\nwait for it, or use another --output",
              path_.string());
  }

  // Writes the header; a full disk is found here.
  void begin() const {
    const bool is_full = ::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes_)) != 0 &&
                         errno != EOPNOTSUPP && errno != EINTR;
    if (is_full || ::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) fail_to_write(path_);
    write_at(0, std::as_bytes(std::span(header_)));
  }

  void write(int64_t row, std::span<const float> rows) const {
    write_at(offset_of(row), std::as_bytes(rows));
  }

  // Of rows that are in the file; else of fewer bytes. Reads blocks: a call of pread(2) returns
  // 2 GiB at most.
  uint64_t checksum(int64_t row, int64_t count) const {
    Checksum sum;
    std::vector<std::byte> block(size_t{1} << 20);
    size_t offset = offset_of(row);
    for (size_t left = static_cast<size_t>(count) * row_bytes_; left > 0;) {
      const ssize_t got = ::pread(file_.get(), block.data(), std::min(left, block.size()),
                                  static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      const auto bytes = static_cast<size_t>(got);
      sum.add(std::span<const std::byte>(block).first(bytes));
      offset += bytes;
      left -= bytes;
    }
    return sum.value();
  }

  void sync() const {
    if (::fsync(file_.get()) != 0) fail_to_write(path_);
  }

 private:
  size_t offset_of(int64_t row) const {
    return header_.size() + static_cast<size_t>(row) * row_bytes_;
  }

  void write_at(size_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t put =
          ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) fail_to_write(path_);
      bytes = bytes.subspan(static_cast<size_t>(put));
      offset += static_cast<size_t>(put);
    }
  }

  fs::path path_;
  Descriptor file_;
  std::string header_;
  size_t row_bytes_, bytes_;
};

struct FinishedWindow {
  uint64_t checksum = 0;  // of its rows
  int64_t cut_texts = 0, cut_tokens = 0;
};

std::string line_of(const FinishedWindow& window) {
  return json_text({{"checksum", checksum_text(window.checksum)},
                    {"cut_texts", window.cut_texts},
                    {"cut_tokens", window.cut_tokens}}) +
         "\n";
}

FinishedWindow parse_window(std::string_view line) {
  const Json json = parse_json(line, "a finished window");
  const JsonFields fields(json, "a finished window");
  const std::optional<uint64_t> checksum = parse_checksum(fields.text("checksum"));
  if (!checksum) fields.fail("checksum", "16 hexadecimal digits");
  return {.checksum = *checksum,
          .cut_texts = fields.count("cut_texts"),
          .cut_tokens = fields.count("cut_tokens")};
}

// The first line of `rest` with its end, which is removed; nothing if the end is missing.
std::optional<std::string_view> take_whole_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end + 1);
  rest.remove_prefix(end + 1);
  return line;
}

// The log of an unfinished file: the first rank has it.
class WindowLog {
 public:
  WindowLog(const fs::path& path, const Json& description)
      : path_(path), file_(open_to_write(path)), header_(json_text(description) + "\n") {
    text_ = read_text(path, SIZE_MAX);
  }

  // Usage error: there is a log of another description.
  bool continues(const Json& description, const fs::path& array) const {
    std::string_view rest = text_;
    const auto first = take_whole_line(rest);
    if (!first) return false;
    require_same_description(
        parse_json(*first, path_.string()), description, array.string(),
        format("repeat the command of that run to resume it, or remove {} to begin again",
               path_.string()));
    return true;
  }

  void begin() {
    if (::ftruncate(file_.get(), 0) != 0) fail_to_write(path_);
    text_ = header_;
    append(header_);
  }

  // Keeps the windows at the beginning for which is_good(window, logged) holds.
  std::vector<FinishedWindow> keep(
      FunctionRef<bool(int64_t window, const FinishedWindow& logged)> is_good) {
    std::string_view rest = text_;
    take_whole_line(rest);
    std::vector<FinishedWindow> kept;
    size_t kept_bytes = text_.size() - rest.size();
    while (const auto line = take_whole_line(rest)) {
      const FinishedWindow window = parse_window(*line);
      if (!is_good(std::ssize(kept), window)) break;
      kept.push_back(window);
      kept_bytes += line->size();
    }
    if (::ftruncate(file_.get(), static_cast<off_t>(kept_bytes)) != 0) fail_to_write(path_);
    if (::lseek(file_.get(), 0, SEEK_END) < 0) fail_to_write(path_);
    return kept;
  }

  void append(std::string_view line) const {
    if (!write_all(file_.get(), line)) fail_to_write(path_);
  }

 private:
  fs::path path_;
  Descriptor file_;
  std::string header_, text_;
};

Json describe(const ModelFolder& folder, const CorpusText& corpus, const CorpusEmbedding& work,
              DType dtype, int64_t width) {
  return {{"rows", corpus.count()},
          {"width", width},
          {"precision", name_of(dtype)},
          {"text", checksum_text(corpus.checksum())},
          {"model", checksum_text(model_checksum(folder))},
          {"pooling", kPoolingNames[static_cast<size_t>(work.rule.pooling)]},
          {"tower", kTowerNames[static_cast<size_t>(work.rule.tower)]},
          {"length", work.length},
          {"window", work.window}};
}

// One run of embed_corpus on one rank.
class CorpusRun {
 public:
  CorpusRun(LoadedModel& model, const ModelFolder& folder, const CorpusText& corpus,
            const CorpusEmbedding& work)
      : world_(model.world()),
        corpus_(corpus),
        work_(work),
        pass_(model),
        text_(folder),
        windows_(div_ceil(corpus.count(), work.window)),
        tensor_ranks_(static_cast<int>(model.config().parallel.tensor)) {
    if (world_.rank() == 0) open(folder, model.placed().params.dtype());
    const auto kept = static_cast<int64_t>(finished_.size());
    first_window_ = world_.all_reduce_max_host(kept);
    // The first rank has made the file.
    if (!array_) array_.emplace(part_of(work.output), corpus.count(), pass_.embedding_width());
  }

  int64_t kept_rows() const { return rows_before(first_window_); }

  void compute(FunctionRef<void(int64_t rows)> on_rows) {
    const int replicas = world_.size() / tensor_ranks_, replica = world_.rank() / tensor_ranks_;
    for (int64_t first = first_window_; first < windows_; first += replicas) {
      const int64_t last = std::min<int64_t>(first + replicas, windows_);
      std::string line;
      if (first + replica < last)
        line = line_of(embed_window(first + replica, [&](int64_t done) {
          on_rows(std::min(rows_before(first) + done * (last - first), rows_before(last)));
        }));
      for (int64_t window = first; window < last; ++window) {
        const auto root = static_cast<int>(window - first) * tensor_ranks_;
        const std::string logged = broadcast_text(world_, line, root);
        if (!log_) continue;
        log_->append(logged);
        finished_.push_back(parse_window(logged));
      }
    }
  }

  // Gives the files their names. On the first rank.
  CorpusProgress finish() {
    CorpusProgress progress{.kept_rows = kept_rows()};
    for (const FinishedWindow& window : finished_) {
      progress.cut_texts += window.cut_texts;
      progress.cut_tokens += window.cut_tokens;
    }
    array_->sync();
    const fs::path part = part_of(work_.output);
    std::error_code problem;
    fs::remove(log_of(work_.output), problem);
    fs::rename(part, work_.output, problem);
    if (!problem) fs::rename(log_of(part), log_of(work_.output), problem);
    BEV_CHECK(!problem, Data, "cannot write {}: {}", work_.output.string(), problem.message());
    return progress;
  }

 private:
  int64_t rows_before(int64_t window) const {
    return std::min(window * work_.window, corpus_.count());
  }

  void open(const ModelFolder& folder, DType dtype) {
    const fs::path part = part_of(work_.output);
    const Json description = describe(folder, corpus_, work_, dtype, pass_.embedding_width());
    array_.emplace(part, corpus_.count(), pass_.embedding_width());
    array_->lock();
    log_.emplace(log_of(part), description);
    if (!log_->continues(description, part)) log_->begin();
    finished_ = log_->keep([&](int64_t window, const FinishedWindow& logged) {
      const int64_t begin = rows_before(window), end = rows_before(window + 1);
      return begin < end && array_->checksum(begin, end - begin) == logged.checksum;
    });
    array_->begin();
  }

  FinishedWindow embed_window(int64_t window, EncoderPass::OnDone on_done) {
    FinishedWindow finished;
    std::vector<EncoderInput> inputs;
    corpus_.read(rows_before(window), rows_before(window + 1), [&](int64_t, std::string_view text) {
      EmbeddingInput input = embedding_input(text_, text_.tokens(text), work_.length);
      inputs.push_back(std::move(input.input));
      finished.cut_texts += input.cut > 0 ? 1 : 0;
      finished.cut_tokens += input.cut;
    });
    std::vector<float> rows;
    for (const std::vector<float>& vector : embed_texts(pass_, inputs, work_.rule, on_done))
      rows.insert(rows.end(), vector.begin(), vector.end());
    if (world_.rank() % tensor_ranks_ == 0) array_->write(rows_before(window), rows);
    finished.checksum = checksum_of(std::as_bytes(std::span(rows)));
    return finished;
  }

  Communicator& world_;
  const CorpusText& corpus_;
  const CorpusEmbedding& work_;
  EncoderPass pass_;
  BertText text_;
  int64_t windows_;
  int tensor_ranks_;
  std::optional<PartialArray> array_;
  std::optional<WindowLog> log_;          // of the first rank
  std::vector<FinishedWindow> finished_;  // known to the first rank
  int64_t first_window_ = 0;
};

}  // namespace

CorpusProgress embed_corpus(LoadedModel& model, const ModelFolder& folder, const CorpusText& corpus,
                            const CorpusEmbedding& work, FunctionRef<void(int64_t rows)> on_rows) {
  CorpusRun run(model, folder, corpus, work);
  on_rows(run.kept_rows());
  run.compute(on_rows);
  return model.world().rank() == 0 ? run.finish() : CorpusProgress{.kept_rows = run.kept_rows()};
}

std::optional<Json> read_embedding_description(const fs::path& output) {
  std::error_code ignored;
  const fs::path log = log_of(output);
  if (!fs::exists(log, ignored)) return std::nullopt;
  const MappedFile file(log);
  std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  return parse_json(take_whole_line(text).value_or(""), log.string());
}

void require_same_description(const Json& found, const Json& expected, const std::string& name,
                              const std::string& advice) {
  std::string differences;
  for (const auto& [key, value] : expected.items()) {
    const Json other = found.is_object() ? found.value(key, Json()) : Json();
    if (other != value)
      differences += format(", {} {} (expected {})", key, json_text(other), json_text(value));
  }
  BEV_CHECK(differences.empty(), Usage, "{} holds other embeddings: {}\n{}", name,
            differences.substr(std::min<size_t>(2, differences.size())), advice);
}

uint64_t model_checksum(const ModelFolder& folder) {
  if (folder.is_checkpoint) return checksum_of(read_text(folder.weights / kManifestName));
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.weights))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Checksum checksum;
  for (const fs::path& path : files) {
    const MappedFile file(path);
    const std::string name = path.filename().string() + "\n";
    checksum.add(std::as_bytes(std::span(name)));
    checksum.add(file.bytes());
  }
  return checksum.value();
}

}  // namespace bev
