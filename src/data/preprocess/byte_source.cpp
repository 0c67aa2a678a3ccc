#include "data/preprocess/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace bev {

namespace {

constexpr size_t kAhead = size_t{1} << 18;

}  // namespace

std::unique_ptr<Decompressor> decompressor_for(std::string_view first_bytes) {
  using namespace std::string_view_literals;
  if (first_bytes.starts_with("\x1f\x8b"sv)) return make_gzip_decompressor();
  if (first_bytes.starts_with("\xfd"
                              "7zXZ\0"sv))
    return make_xz_decompressor();
  if (first_bytes.starts_with("\x28\xb5\x2f\xfd"sv)) return make_zstd_decompressor();
  return nullptr;
}

int64_t size_of_input(const std::string& path) {
  struct stat facts{};
  const int code = path == "-" ? ::fstat(STDIN_FILENO, &facts) : ::stat(path.c_str(), &facts);
  return code == 0 && S_ISREG(facts.st_mode) ? static_cast<int64_t>(facts.st_size) : -1;
}

ByteSource::ByteSource(const std::string& path)
    : name_(path == "-" ? "stdin" : path),
      descriptor_(path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      raw_(kAhead) {
  BEV_CHECK(descriptor_ >= 0, Data, "cannot read {}: {}", name_, std::strerror(errno));
  struct stat facts{};
  if (::fstat(descriptor_, &facts) == 0 && S_ISDIR(facts.st_mode)) {
    ::close(descriptor_);
    throw Error(ErrorKind::Data, format("cannot read {}: it is a folder", name_));
  }
  try {
    refill();
    decompressor_ = decompressor_for({raw_.data(), std::min<size_t>(end_, 6)});
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

ByteSource::~ByteSource() { ::close(descriptor_); }

size_t ByteSource::read_raw(std::span<char> out) {
  size_t have = 0;
  while (have < out.size()) {
    const ssize_t got = ::read(descriptor_, out.data() + have, out.size() - have);
    if (got < 0 && errno == EINTR) continue;
    BEV_CHECK(got >= 0, Data, "cannot read {}: {}", name_, std::strerror(errno));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  taken_ += static_cast<int64_t>(have);
  return have;
}

void ByteSource::refill() {
  begin_ = 0;
  end_ = read_raw(raw_);
  at_end_ = end_ < raw_.size();
}

size_t ByteSource::read(std::span<char> out) {
  if (decompressor_) return read_compressed(out);
  const size_t ready = std::min(out.size(), end_ - begin_);
  std::memcpy(out.data(), raw_.data() + begin_, ready);
  begin_ += ready;
  return ready < out.size() ? ready + read_raw(out.subspan(ready)) : ready;
}

size_t ByteSource::read_compressed(std::span<char> out) {
  size_t have = 0;
  while (have < out.size()) {
    if (begin_ == end_ && !at_end_) refill();
    const std::span<const char> in(raw_.data() + begin_, end_ - begin_);
    Decompressor::Progress done;
    try {
      done = decompressor_->run(in, out.subspan(have));
    } catch (const Error& error) {
      throw Error(error.kind, format("{}: {}", name_, error.what()));
    }
    begin_ += done.used;
    have += done.made;
    if (done.used > 0 || done.made > 0) continue;
    BEV_CHECK(in.empty(), Data, "{}: something that is not compressed stands behind the data",
              name_);
    if (!at_end_) continue;
    BEV_CHECK(decompressor_->is_complete(), Data,
              "{}: the compressed data ends in the middle; the file is cut off", name_);
    break;
  }
  return have;
}

}  // namespace bev
