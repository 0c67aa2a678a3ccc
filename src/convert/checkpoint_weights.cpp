#include "convert/checkpoint_weights.h"

#include <algorithm>
#include <ctime>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "checkpoint/checkpoint_draft.h"
#include "checkpoint/checkpoint_survey.h"
#include "checkpoint/piece_file.h"
#include "config/parse/field.h"
#include "config/parse/toml.h"
#include "config/parse/value.h"
#include "model/model_spec.h"

namespace bev {

const CheckpointReader::Tensor& CheckpointWeights::find(const ParamSpec& spec) {
  const CheckpointReader::Tensor* found =
      prefers_masters_ ? stored_.find(spec.name + "/master") : nullptr;
  if (found == nullptr) found = stored_.find(spec.name);
  BEV_CHECK(found != nullptr, Data, "{}: there is no tensor {}", stored_.folder().string(),
            in_quotes(spec.name));
  Shape expected = spec.shape;
  if (is_vocab_table(spec.role) && found->shape.rank() == expected.rank() &&
      found->shape[0] >= vocab_)
    expected.set(0, found->shape[0]);
  BEV_CHECK(found->shape == expected, Data, "{}: {} is {}, the model has {}",
            stored_.folder().string(), in_quotes(spec.name), to_string(found->shape),
            to_string(spec.shape));
  used_.insert(spec.name);
  return *found;
}

int64_t stored_vocab_rows(const CheckpointReader& stored) {
  for (const auto& [name, tensor] : stored.tensors())
    if (name.ends_with(kTokenTable)) return tensor.shape[0];
  return 0;
}

DType CheckpointWeights::dtype_of(const ParamSpec& spec) { return find(spec).dtype; }

void CheckpointWeights::read(const ParamSpec& spec, const Rectangle& where, DType dtype,
                             std::byte* to) {
  const CheckpointReader::Tensor& tensor = find(spec);
  const Rectangle there = intersection(where, whole_of(tensor.shape));
  if (there.rows > 0) stored_.read(tensor, there, dtype, to);
  // Rows come in order, so what is missing lies behind.
  const size_t size = size_of(dtype);
  std::fill(to + static_cast<size_t>(there.rows * where.columns) * size,
            to + static_cast<size_t>(where.elements()) * size, std::byte{0});
}

void CheckpointWeights::check_all_used() {
  for (const auto& [name, tensor] : stored_.tensors())
    BEV_CHECK(used_.contains(std::string(parameter_of(name))), Data,
              "{}: {} belongs to no parameter of the model", stored_.folder().string(),
              in_quotes(name));
}

namespace fs = std::filesystem;

namespace {

constexpr int64_t kRelease = -1;

// Removes a draft that did not become a checkpoint.
class Draft {
 public:
  explicit Draft(const CheckpointFolder& folder) : draft_(folder, kRelease) { draft_.start(); }
  ~Draft() {
    if (!is_committed_) draft_.drop();
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const fs::path& path() const { return draft_.path(); }
  void commit() {
    draft_.commit();
    is_committed_ = true;
  }

 private:
  CheckpointDraft draft_;
  bool is_committed_ = false;
};

struct Planned {
  const ParamSpec* spec;
  TensorPiece piece;
};

std::vector<std::vector<Planned>> plan_files(std::span<const ParamSpec> specs, WeightSource& source,
                                             size_t most_bytes) {
  std::vector<std::vector<Planned>> files;
  size_t in_file = 0;
  for (const ParamSpec& spec : specs) {
    const TensorPiece piece{.tensor = spec.name,
                            .dtype = source.dtype_of(spec),
                            .shape = spec.shape,
                            .where = whole_of(spec.shape)};
    if (files.empty() || in_file + piece.bytes() > most_bytes) {
      files.emplace_back();
      in_file = 0;
    }
    in_file += piece.bytes();
    files.back().push_back({&spec, piece});
  }
  return files;
}

CheckpointFile write_file(const fs::path& path, const std::vector<Planned>& tensors,
                          WeightSource& source, const ReleaseOptions& options) {
  std::vector<TensorPiece> pieces;
  for (const Planned& planned : tensors) pieces.push_back(planned.piece);
  PieceFileWriter file(path, std::move(pieces));
  std::vector<std::byte> block;
  for (const auto& [spec, piece] : tensors) {
    const size_t row_bytes = static_cast<size_t>(piece.where.columns) * size_of(piece.dtype);
    const auto step = static_cast<int64_t>(std::max<size_t>(1, options.block_bytes / row_bytes));
    for (int64_t row = 0; row < piece.where.rows; row += step) {
      const Rectangle part{.row = row,
                           .rows = std::min(step, piece.where.rows - row),
                           .columns = piece.where.columns};
      block.resize(static_cast<size_t>(part.rows) * row_bytes);
      source.read(*spec, part, piece.dtype, block.data());
      file.write(block);
      if (options.on_progress) options.on_progress(block.size());
    }
  }
  return file.finish();
}

CheckpointFile write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
  return {.name = path.filename().string(),
          .bytes = text.size(),
          .checksum = checksum_of(text),
          .holds_pieces = false};
}

}  // namespace

void check_release_place(const fs::path& root) {
  const CheckpointFolder folder(root);
  std::error_code ignored;
  if (!fs::exists(root, ignored)) return;
  BEV_CHECK(fs::is_directory(root, ignored), Data, "{} exists and is not a folder", root.string());
  const fs::path place = folder.place_of(kRelease);
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    // A conversion that was killed leaves hidden folders, which the next one removes.
    const bool is_ours = entry.path() == place || entry.path() == folder.tracker() ||
                         name.starts_with(format(".{}.", place.filename().string()));
    BEV_CHECK(is_ours, Data,
              "{} holds {}, which is not an earlier output of a conversion; another folder is "
              "needed",
              root.string(), in_quotes(name));
  }
  BEV_CHECK(!fs::exists(place, ignored) || fs::exists(place / kManifestName, ignored), Data,
            "{} is not replaced: it has no {}", place.string(), kManifestName);
}

void write_release(const fs::path& root, const Config& config, std::span<const ParamSpec> specs,
                   WeightSource& source, const ReleaseOptions& options) {
  const ErrorContext context(format("writing the checkpoint to {}", root.string()));
  check_release_place(root);
  const std::vector<std::vector<Planned>> files =
      plan_files(specs, source, options.most_file_bytes);
  Manifest manifest;
  manifest.time = std::time(nullptr);
  manifest.history.push_back({.after_iteration = 0,
                              .time = manifest.time,
                              .program = options.program,
                              .layout = options.origin,
                              .changes = {}});
  Origins origins;
  for (const Field& field : fields()) {
    const Value value = get_value(config, field.path);
    manifest.config[field.path] = toml_text(field, value);
    if (value != field.standard)
      origins[field.path] = {.kind = OriginKind::File, .text = options.origin};
  }
  for (const ParamSpec& spec : specs) manifest.parameters += spec.shape.elements();

  const CheckpointFolder folder(root);
  folder.clear_leftovers();
  Draft draft(folder);
  for (size_t i = 0; i < files.size(); ++i)
    manifest.files.push_back(
        write_file(draft.path() / format("weights-{:05d}-of-{:05d}.safetensors", i, files.size()),
                   files[i], source, options));
  manifest.files.push_back(
      write_text(draft.path() / kCheckpointConfig, print_config(config, origins)));
  for (const TokenizerFile& file : options.files)
    manifest.files.push_back(
        write_text(draft.path() / file.name, file.path.empty() ? file.text : read_text(file.path)));
  write_manifest(draft.path(), manifest);
  draft.commit();
}

}  // namespace bev
