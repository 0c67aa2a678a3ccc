#include "data/preprocess/partition_spool.h"

#include <algorithm>

namespace bev {

namespace {

// Calls f with one block of the file after the other.
template <class T, class F>
void for_each_block(const SpoolFile& file, F f) {
  constexpr size_t kBlock = size_t{1} << 20;
  std::vector<T> block;
  for (size_t done = 0; done < file.size(); done += block.size() * sizeof(T)) {
    block.resize(std::min(kBlock, file.size() - done) / sizeof(T));
    file.read_at(done, std::as_writable_bytes(std::span(block)));
    f(std::span<const T>(block));
  }
}

}  // namespace

void PartitionSpool::add(const EncodedDocuments& documents) {
  ids_.write(documents.ids);
  lengths_.write(std::as_bytes(std::span(documents.lengths)));
  sequences_.write(std::as_bytes(std::span(documents.sequences)));
}

void PartitionSpool::write_to(TokenFileWriter& writer) const {
  for_each_block<std::byte>(ids_, [&](auto block) { writer.add_ids(block); });
  for_each_block<int32_t>(lengths_, [&](auto block) { writer.add_lengths(block); });
  for_each_block<int32_t>(sequences_, [&](auto block) { writer.add_documents(block); });
}

}  // namespace bev
