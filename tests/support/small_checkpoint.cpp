#include "support/small_checkpoint.h"

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "checkpoint/checkpoint_draft.h"
#include "checkpoint/piece_file.h"

namespace bev::test {

namespace {

std::vector<Share> shares_of(const SmallTensor& tensor, int ranks) {
  if (!tensor.shares.empty()) return tensor.shares;
  const Rectangle whole = whole_of(tensor.shape);
  std::vector<Share> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    Rectangle part = whole;
    part.row = whole.rows * rank / ranks;
    part.rows = whole.rows * (rank + 1) / ranks - part.row;
    if (part.rows > 0) shares.push_back({rank, part});
  }
  return shares;
}

// The tensors of one kind that one rank owns.
CheckpointFile write_pieces(const std::filesystem::path& path, const SmallCheckpoint& all, int rank,
                            bool is_optimizer) {
  std::vector<TensorPiece> pieces;
  std::vector<std::byte> data;
  for (const SmallTensor& tensor : all.tensors) {
    if ((tensor.name.find('/') != std::string::npos) != is_optimizer) continue;
    for (const Share& share : shares_of(tensor, all.ranks)) {
      if (share.rank != rank) continue;
      pieces.push_back({tensor.name, tensor.dtype, tensor.shape, share.where});
      const std::vector<std::byte> bytes = tensor.bytes(share.where, tensor.dtype);
      data.insert(data.end(), bytes.begin(), bytes.end());
    }
  }
  if (pieces.empty()) return {};
  PieceFileWriter writer(path, pieces);
  writer.write(data);
  return writer.finish();
}

}  // namespace

std::vector<std::byte> SmallTensor::bytes(const Rectangle& where, DType as) const {
  const int64_t columns = whole_of(shape).columns;
  std::vector<double> chosen;
  for (int64_t row = where.row; row < where.row_end(); ++row)
    for (int64_t column = where.column; column < where.column_end(); ++column)
      chosen.push_back(values[static_cast<size_t>(row * columns + column)]);
  std::vector<std::byte> stored(chosen.size() * size_of(dtype));
  convert_elements(std::as_bytes(std::span(chosen)), DType::f64, stored, dtype);
  std::vector<std::byte> result(chosen.size() * size_of(as));
  convert_elements(stored, dtype, result, as);
  return result;
}

SmallTensor& SmallCheckpoint::tensor(const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const SmallTensor& t) { return t.name == name; });
}

std::filesystem::path SmallCheckpoint::write(const std::filesystem::path& root) const {
  const CheckpointFolder folder(root);
  const CheckpointDraft in_writing(folder, manifest.iteration);
  in_writing.start();
  const std::filesystem::path& draft = in_writing.path();
  Manifest complete = manifest;
  for (const bool is_optimizer : {false, true}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string name = format("{}-{:05d}-of-{:05d}.safetensors",
                                      is_optimizer ? "optimizer" : "weights", rank, ranks);
      const CheckpointFile file = write_pieces(draft / name, *this, rank, is_optimizer);
      if (!file.name.empty()) complete.files.push_back(file);
    }
  }
  AtomicFile config(draft / "config.toml");
  config.write(config_toml);
  config.commit();
  complete.files.push_back({.name = "config.toml",
                            .bytes = config_toml.size(),
                            .checksum = checksum_of(config_toml),
                            .holds_pieces = false});
  write_manifest(draft, complete);
  in_writing.commit();
  return folder.place_of(manifest.iteration);
}

SmallTensor counting_tensor(std::string name, DType dtype, Shape shape, int first) {
  SmallTensor tensor{.name = std::move(name), .dtype = dtype, .shape = shape};
  for (int64_t i = 0; i < shape.elements(); ++i)
    tensor.values.push_back(static_cast<double>((first + i) % 251 - 125) / 8);
  return tensor;
}

SmallCheckpoint small_checkpoint(int64_t iteration, int ranks, bool with_optimizer) {
  SmallCheckpoint all;
  all.ranks = ranks;
  all.tensors = {counting_tensor("embedding.tokens.weight", DType::bf16, {8, 4}, 3),
                 counting_tensor("layers.0.mlp.up.weight", DType::bf16, {6, 4}, 60),
                 counting_tensor("layers.0.norm1.weight", DType::bf16, {4}, 130)};
  all.manifest.parameters = 60;
  if (with_optimizer) {
    const std::vector<SmallTensor> weights = all.tensors;
    for (const SmallTensor& weight : weights) {
      int first = 7;
      for (const char* kind : {"master", "adam.m", "adam.v"})
        all.tensors.push_back(
            counting_tensor(weight.name + "/" + kind, DType::f32, weight.shape, first += 40));
    }
    all.manifest.optimizer = "adamw";
    all.manifest.update = {{"loss_scale", 1.0}, {"step", static_cast<double>(iteration)}};
  }
  Manifest& m = all.manifest;
  m.iteration = iteration;
  m.consumed_samples = m.scheduled_samples = m.data_position = 8 * iteration;
  m.seed = 1234;
  m.config = {{"model.layers", "1"}, {"model.width", "4"}, {"train.seed", "1234"}};
  m.loss = 3.5;
  m.valid_loss = 3.75;
  m.time = 1'700'000'000;
  m.history = {{.after_iteration = 0,
                .time = 1'699'999'000,
                .program = "bevatron 0.1",
                .layout = format("{} ranks", ranks),
                .changes = {}}};
  return all;
}

std::vector<Rectangle> random_cut(const Shape& shape, int pieces, std::mt19937& random) {
  std::vector<Rectangle> cut{whole_of(shape)};
  for (int i = 1; i < pieces; ++i) {
    Rectangle& chosen = cut[random() % cut.size()];
    Rectangle rest = chosen;
    if (random() % 2 == 0 && chosen.rows > 1) {
      chosen.rows = 1 + static_cast<int64_t>(random()) % (chosen.rows - 1);
      rest.row += chosen.rows;
      rest.rows -= chosen.rows;
    } else if (chosen.columns > 1) {
      chosen.columns = 1 + static_cast<int64_t>(random()) % (chosen.columns - 1);
      rest.column += chosen.columns;
      rest.columns -= chosen.columns;
    } else {
      continue;
    }
    cut.push_back(rest);
  }
  return cut;
}

}  // namespace bev::test
