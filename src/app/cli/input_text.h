// All of a file, or of stdin when it is called "-".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace bev::app {

class WholeInput {
 public:
  explicit WholeInput(const std::string& path);

  // Lives as long as this.
  std::string_view text() const;
  // For messages.
  const std::string& name() const { return name_; }

 private:
  std::string name_, piped_;
  std::optional<MappedFile> file_;
};

}  // namespace bev::app
