// The fields of a request, read strictly: each is asked for by name, with its type and range; what
// nobody asked for is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"
#include "serve/api_error.h"

namespace bev {

// The first problem counts: questions after it are answered with `otherwise`. A field that is null
// is as good as absent.
class FieldReader {
 public:
  // `json` must outlive this. What is no object is a problem. `where` stands in front of names in
  // messages: "stream_options.".
  explicit FieldReader(const Json& json, std::string where = "");

  // Null where it is absent.
  const Json* find(std::string_view name);
  bool boolean(std::string_view name, bool otherwise);
  int64_t integer(std::string_view name, int64_t otherwise, int64_t min, int64_t max);
  double real(std::string_view name, double otherwise, double min, double max);
  // Up to so many bytes.
  std::string text(std::string_view name, std::string_view otherwise, size_t most);

  void refuse(std::string_view name, std::string message);
  // Takes over a problem, where there is one.
  void add(const std::optional<ApiError>& problem);
  bool is_good() const { return !problem_; }
  // The first problem. A field that was never asked for comes before all others: what is missing
  // may stand there, misspelt. REQUIRES: all fields were asked for, whatever was found wrong.
  std::optional<ApiError> finish();

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
  std::optional<ApiError> problem_;
};

}  // namespace bev
