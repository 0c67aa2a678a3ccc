// Which algorithm was found to be the fastest for each kind of product, kept on disk from run to
// run: one file for each GPU model and version of the library.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <unordered_map>

#include "ops/cuda/gemm/gemm_key.h"

namespace bev::cuda {

struct KnownProduct {
  bool fused = false;                   // the activation is inside
  std::array<uint64_t, 8> algorithm{};  // opaque, the library's own
  double seconds = 0;                   // of one product when it was chosen
};

class ProductCache {
 public:
  // An empty folder: nothing is read or kept. A file that cannot be read or is not what this
  // program writes counts as absent.
  ProductCache(const std::filesystem::path& folder, const std::string& gpu, size_t library_version);

  // Null where nothing is known.
  const KnownProduct* find(const ProductKind& kind) const;
  void put(const ProductKind& kind, const KnownProduct& product);

  // Writes what was put, beside what other processes had written by then; of two that write at the
  // same moment one may be lost. Returns why it cannot; empty when it could, or when there is
  // nothing to write.
  std::string save();

  const std::filesystem::path& file() const { return file_; }

 private:
  using Products = std::unordered_map<ProductKind, KnownProduct, FactsHash>;
  Products read() const;
  std::string text_of(const Products& products) const;

  std::filesystem::path file_;
  std::string gpu_;
  size_t library_version_;
  Products known_, fresh_;
};

}  // namespace bev::cuda
