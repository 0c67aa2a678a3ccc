// Documents of one partition, set aside on disk until those before it are written.
#pragma once

#include "data/token_file_writer.h"

namespace bev {

class PartitionSpool {
 public:
  explicit PartitionSpool(const std::filesystem::path& folder)
      : ids_(folder), lengths_(folder), sequences_(folder) {}

  void add(const EncodedDocuments& documents);
  void write_to(TokenFileWriter& writer) const;

 private:
  SpoolFile ids_, lengths_, sequences_;
};

}  // namespace bev
