// Small checkpoints with known content, written in pieces as ranks of some layout would.
#pragma once

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "tensor/dtype.h"
#include "tensor/rectangle.h"
#include "tensor/tensor.h"

namespace bev::test {

// A piece, and the rank that writes it.
struct Share {
  int rank = 0;
  Rectangle where{};
};

struct SmallTensor {
  std::string name{};
  DType dtype = DType::f32;
  Shape shape{};
  std::vector<double> values{};  // all of them
  std::vector<Share> shares{};   // empty: rows in equal parts over the ranks

  // The elements of a rectangle as another type.
  std::vector<std::byte> bytes(const Rectangle& where, DType as) const;
};

struct SmallCheckpoint {
  int ranks = 1;
  Manifest manifest{};  // without the files
  std::vector<SmallTensor> tensors{};
  std::string config_toml = "[model]\nlayers = 1\n";

  SmallTensor& tensor(const std::string& name);
  // Writes it as training does, through a draft. Returns its folder.
  std::filesystem::path write(const std::filesystem::path& root) const;
};

// Weights in bf16 of a model with one layer, and with an optimizer what Adam keeps of them in f32.
SmallCheckpoint small_checkpoint(int64_t iteration, int ranks, bool with_optimizer = true);

// A tensor whose values are small numbers that every floating type holds.
SmallTensor counting_tensor(std::string name, DType dtype, Shape shape, int first = 0);

// Cuts a matrix at random places, also within rows, into `pieces` rectangles or fewer.
std::vector<Rectangle> random_cut(const Shape& shape, int pieces, std::mt19937& random);

}  // namespace bev::test
