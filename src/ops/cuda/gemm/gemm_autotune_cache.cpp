#include "ops/cuda/gemm/gemm_autotune_cache.h"

#include <cctype>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "base/philox.h"

namespace bev::cuda {

namespace {

// Grows whenever the meaning of a kind or of an entry changes.
constexpr int kFormat = 2;
static_assert(std::tuple_size_v<ProductKind> == 23, "another kind is another format");
constexpr JsonLimits kLimits{.bytes = size_t{16} << 20, .depth = 8};

std::string slug_of(const std::string& name) {
  std::string slug;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !slug.empty() && slug.back() != '-') slug += '-';
  }
  return slug;
}

// An algorithm is opaque: what a damaged one would do cannot be known, so it must not reach the
// library.
uint64_t checksum_of(const ProductKind& kind, const KnownProduct& product) {
  uint64_t sum = mix_key(FactsHash{}(kind), product.fused ? 1u : 0u);
  for (const uint64_t word : product.algorithm) sum = mix_key(sum, word);
  return sum;
}

Json json_of(const ProductKind& kind, const KnownProduct& product) {
  return {{"kind", kind},
          {"activation_inside", product.fused},
          {"algorithm", product.algorithm},
          {"microseconds", 1e6 * product.seconds},
          {"checksum", checksum_of(kind, product)}};
}

}  // namespace

ProductCache::ProductCache(const std::filesystem::path& folder, const std::string& gpu,
                           size_t library_version)
    : gpu_(gpu), library_version_(library_version) {
  if (folder.empty()) return;
  file_ = folder / format("products-{}-{}.json", slug_of(gpu), library_version);
  known_ = read();
}

ProductCache::Products ProductCache::read() const {
  Products products;
  std::error_code ignored;
  if (file_.empty() || !std::filesystem::exists(file_, ignored)) return products;
  try {
    const Json json = read_json(file_, kLimits);
    if (json.at("format") != kFormat || json.at("gpu") != gpu_ ||
        json.at("library") != library_version_) {
      return products;
    }
    for (const Json& entry : json.at("products")) {
      const auto kind = entry.at("kind").get<ProductKind>();
      const KnownProduct product{.fused = entry.at("activation_inside").get<bool>(),
                                 .algorithm = entry.at("algorithm").get<std::array<uint64_t, 8>>(),
                                 .seconds = 1e-6 * entry.at("microseconds").get<double>()};
      if (entry.at("checksum").get<uint64_t>() == checksum_of(kind, product))
        products[kind] = product;
    }
  } catch (const Error&) {
    products.clear();
  } catch (const Json::exception&) {
    products.clear();
  }
  return products;
}

const KnownProduct* ProductCache::find(const ProductKind& kind) const {
  const auto found = known_.find(kind);
  return found == known_.end() ? nullptr : &found->second;
}

void ProductCache::put(const ProductKind& kind, const KnownProduct& product) {
  known_[kind] = product;
  fresh_[kind] = product;
}

std::string ProductCache::text_of(const Products& products) const {
  Json list = Json::array();
  for (const auto& [kind, product] : products) list.push_back(json_of(kind, product));
  return Json{{"format", kFormat}, {"gpu", gpu_}, {"library", library_version_}, {"products", list}}
             .dump(1) +
         "\n";
}

std::string ProductCache::save() {
  if (file_.empty() || fresh_.empty()) return {};
  try {
    std::filesystem::create_directories(file_.parent_path());
    Products all = read();
    for (const auto& [kind, product] : fresh_) all[kind] = product;
    AtomicFile file(file_);
    file.write(text_of(all));
    file.commit();
    fresh_.clear();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace bev::cuda
