// Lines that preprocessing could not use, kept for whoever wants to repair them: one JSON object
// per line with file, line, why and the text (in base64 where it is no UTF-8).
#pragma once

#include <optional>

#include "base/file.h"
#include "data/preprocess/document_encoder.h"

namespace bev {

class RejectedFile {
 public:
  explicit RejectedFile(const std::filesystem::path& path) : path_(path) {}

  void add(const std::string& input, const RejectedLine& line);
  // Writes the file; when nothing was rejected, removes the one of an earlier run.
  void commit();

  const std::filesystem::path& path() const { return path_; }
  int64_t count() const { return count_; }
  // The first few, as messages show them.
  const std::vector<std::string>& first() const { return first_; }

 private:
  std::filesystem::path path_;
  std::optional<AtomicFile> file_;
  std::vector<std::string> first_;
  int64_t count_ = 0;
};

}  // namespace bev
