// What the cases about samples share: integer arrays of golden files, the token files they were
// made from, and the report of how many things differ.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "data/megatron/megatron_dataset.h"
#include "golden_runner/report.h"

namespace bev::golden {

inline constexpr std::array<const char*, 3> kSplits{"train", "valid", "test"};
// The golden samples are of GPT-2's tokenizer.
inline constexpr int32_t kEndOfText = 50256;

// An array of integers, rows one after the other.
std::vector<int64_t> read_integers(const SafetensorsReader& reader, const std::string& name);
// The same of NumPy's file format.
std::vector<int64_t> read_npy(const std::filesystem::path& path);

// data/ beside the folder of the samples.
std::shared_ptr<const TokenFile> open_tokens(const std::filesystem::path& samples_dir,
                                             const std::string& prefix);

// The sequences of a split, by its number.
SequenceRange range_of(const TokenFile& file, const std::string& split, size_t number);

// null: no value.
std::optional<int64_t> optional_integer(const Json& value);

// The starts of an index as rows of two.
std::vector<int64_t> flat_starts(const MegatronIndex& index);

// One sample alone.
HostBatch read_sample(const Dataset& samples, int64_t index, int64_t length, bool packed);
// Its tokens and the last target.
std::vector<int32_t> text_of(const HostBatch& batch);
std::string digits_of(const std::vector<float>& weights);

// The cases of one file each.
void run_partial(const std::filesystem::path& file, const std::string& name, Report& report);
void run_inter_document(const std::filesystem::path& file, const std::string& name, Report& report);
void run_cache(const std::filesystem::path& dir, const std::string& name, Report& report);
void run_blends(const std::filesystem::path& file, const std::string& name, Report& report);
void run_mappings(const std::filesystem::path& file, const std::string& name, Report& report);
void run_samplers(const std::filesystem::path& file, const std::string& name, Report& report);

}  // namespace bev::golden
