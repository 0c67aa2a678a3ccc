#include "base/json.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"

namespace bev {

namespace {

// Builds the value while watching depth and repeated names, neither of which the library's own
// builder refuses.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view source, int depth_limit) : source_(source), depth_limit_(depth_limit) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    BEV_CHECK(!open_.back()->contains(name), Data, "{}: the name {} stands twice in one object",
              source_, in_quotes(name));
    name_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    // The library's text starts with its own error number and place, up to the second colon.
    const std::string_view what = e.what();
    const size_t colon = what.rfind(": ");
    throw Error(ErrorKind::Data,
                format("{}: not valid JSON at byte {}: {}", source_, position,
                       colon == std::string_view::npos ? what : what.substr(colon + 2)));
  }

 private:
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[name_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    BEV_CHECK(static_cast<int>(open_.size()) < depth_limit_, Data,
              "{}: arrays and objects are nested deeper than {}", source_, depth_limit_);
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view source_;
  int depth_limit_;
  Json root_;
  std::vector<Json*> open_;  // a parent does not grow while a child is open, so these stay valid
  std::string name_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view source, JsonLimits limits) {
  BEV_CHECK(text.size() <= limits.bytes, Data, "{}: {} bytes of JSON; at most {} are read", source,
            text.size(), limits.bytes);
  // The library takes a zero byte for the end and would not look at what follows.
  const size_t zero = text.find('\0');
  BEV_CHECK(zero == std::string_view::npos, Data, "{}: not valid JSON at byte {}: a zero byte",
            source, zero + 1);
  Builder builder(source, limits.depth);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Json read_json(const std::filesystem::path& path, JsonLimits limits) {
  return parse_json(read_text(path, limits.bytes), path.string(), limits);
}

std::string in_quotes(std::string_view text) {
  constexpr size_t kReadable = 120;
  const bool cut = text.size() > kReadable;
  const Json value = std::string(text.substr(0, kReadable));
  return value.dump(-1, ' ', true, Json::error_handler_t::replace) + (cut ? "..." : "");
}

}  // namespace bev
