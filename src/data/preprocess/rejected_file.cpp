#include "data/preprocess/rejected_file.h"

#include "base/format.h"
#include "base/json.h"
#include "text/utf8.h"

namespace bev {

namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t here = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < here ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) out += i <= here ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

}  // namespace

void RejectedFile::add(const std::string& input, const RejectedLine& line) {
  constexpr size_t kShown = 3;
  if (first_.size() < kShown)
    first_.push_back(format("{}, line {}: {}", input, line.line, line.why));
  if (!file_) file_.emplace(path_);
  Json row{{"file", input}, {"line", line.line}, {"why", line.why}, {"bytes", line.bytes}};
  if (valid_utf8_prefix(line.text) == line.text.size())
    row["text"] = line.text;
  else
    row["text_base64"] = base64(line.text);
  // `why` may repeat a piece of a file.
  file_->write(row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  ++count_;
}

void RejectedFile::commit() {
  if (file_) {
    file_->commit();
  } else {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
}

}  // namespace bev
