#include "train/control_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "config/parse/problem.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

using Kind = ControlRequest::Kind;

constexpr std::array<std::string_view, 4> kRequestNames{"save", "stop", "eval", "lr"};
constexpr std::string_view kLegal = "legal are save, stop, eval and lr";
constexpr double kMostRate = 1000;
// A shell makes a file before it writes it; two changes within one tick of a disk's clock look like
// one. Both are over after these seconds.
constexpr double kSettleSeconds = 2;
constexpr size_t kMostFiles = 200;

constexpr std::string_view kReadme =
    "What this run can be asked for while it goes on: make one of these files here. It is removed\n"
    "when the run has seen it, after the iteration that is under way.\n"
    "\n"
    "  touch save           write a checkpoint now\n"
    "  touch eval           validate now\n"
    "  touch stop           write a checkpoint and end\n"
    "  echo 0.5 > lr        multiply the scheduled learning rate by a factor from 0 to 1000;\n"
    "                       1 returns to the schedule\n";

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

std::optional<Kind> kind_of(std::string_view name) {
  const auto found = std::find(kRequestNames.begin(), kRequestNames.end(), lower(name));
  if (found == kRequestNames.end()) return std::nullopt;
  return static_cast<Kind>(found - kRequestNames.begin());
}

// What editors and file systems leave beside a file, and what explains the folder.
bool is_incidental(const std::string& name) {
  return name.starts_with('.') || name.ends_with('~') || lower(name).starts_with("readme");
}

std::string user_name(uint32_t id) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(id, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return format("user {}", id);
}

std::optional<double> parse_rate(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  // Written so that no comparison with NaN passes.
  if (!is_whole || !(value >= 0 && value <= kMostRate)) return std::nullopt;
  return value;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

std::string_view name_of(Kind kind) { return kRequestNames[static_cast<size_t>(kind)]; }

ControlFolder::ControlFolder(fs::path folder, Clock clock)
    : folder_(std::move(folder)), clock_(std::move(clock)) {}

void ControlFolder::prepare() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  BEV_CHECK(!error, Data, "cannot make the folder {}: {}", folder_.string(), error.message());
  struct stat above{}, own{};
  const fs::path parent = folder_.has_parent_path() ? folder_.parent_path() : ".";
  // Where this fails, the folder is somebody else's, who has decided about it.
  if (::stat(parent.c_str(), &above) == 0 && ::stat(folder_.c_str(), &own) == 0 &&
      (above.st_mode & S_IWGRP) != 0)
    (void)::chmod(folder_.c_str(), (own.st_mode & 07777) | S_IRWXG);
  const fs::path readme = folder_ / "README";
  if (read_found(AT_FDCWD, readme.string(), kReadme.size() + 1) == kReadme) return;
  AtomicFile file(readme);
  file.write(kReadme);
  file.commit();
}

bool ControlFolder::is_worth_reading() {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(folder_, error);
  if (error) {
    last_.reset();
    waiting_.clear();
    seen_.clear();
    return false;
  }
  const double now = clock_();
  if (last_ != time) {
    last_ = time;
    changed_ = now;
  }
  return watches_files_ || now - changed_ <= kSettleSeconds;
}

std::vector<ControlRequest> ControlFolder::poll() {
  if (is_worth_reading()) {
    const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) read_folder(folder);
  }
  std::vector<ControlRequest> requests;
  requests.reserve(waiting_.size());
  for (const Waiting& waiting : waiting_) requests.push_back(waiting.request);
  return requests;
}

// Takes the descriptor.
void ControlFolder::read_folder(int folder) {
  const std::unique_ptr<DIR, CloseFolder> listing(::fdopendir(folder));
  if (!listing) {
    ::close(folder);
    return;
  }
  waiting_.clear();
  watches_files_ = false;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (is_incidental(name)) continue;
    if (names.size() == kMostFiles) break;
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::erase_if(seen_, [&](const auto& seen) {
    return !std::binary_search(names.begin(), names.end(), seen.first);
  });
  for (const std::string& name : names) look_at(folder, name);
}

void ControlFolder::look_at(int folder, const std::string& name) {
  const std::optional<UntrustedFile> found = find_file(folder, name);
  if (!found) return;
  const auto [place, is_new] = seen_.try_emplace(name);
  Seen& seen = place->second;
  if (is_new || seen.stamp != found->stamp) seen = {.stamp = found->stamp, .since = clock_()};
  const std::optional<Kind> kind = kind_of(name);
  if (!kind) {
    const std::vector<std::string> names(kRequestNames.begin(), kRequestNames.end());
    const std::string near = nearest(name, names);
    note_once(name, format("means nothing; {}",
                           near.empty() ? std::string(kLegal)
                                        : format("{}: did you mean {}?", kLegal, near)));
    return;
  }
  if (!found->other.empty()) {
    note_once(name, format("is {} and means nothing; a regular file would", found->other));
    return;
  }
  ControlRequest request{.kind = *kind, .time = found->stamp.seconds};
  watches_files_ = watches_files_ || seen.is_refused || *kind == Kind::Rate;
  if (seen.is_refused) return;
  if (*kind == Kind::Rate) {
    const std::optional<double> rate = rate_in(folder, name, seen);
    if (!rate) return;
    request.rate = *rate;
  }
  request.by = user_name(found->owner);
  const auto same = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const Waiting& w) { return w.request.kind == *kind; });
  if (same == waiting_.end()) {
    waiting_.push_back({.request = request, .files = {name}});
    return;
  }
  // STOP beside stop: the newer one speaks for both.
  same->files.push_back(name);
  if (request.time > same->request.time) same->request = request;
}

std::optional<double> ControlFolder::rate_in(int folder, const std::string& name,
                                             const Seen& seen) {
  constexpr size_t kMostText = 64;
  const std::optional<std::string> text = read_found(folder, name, kMostText);
  const bool weights_constant = clock_() - seen.since > kSettleSeconds;
  // Without its newline, "0." may become 0.5.
  const bool is_whole = text && text->ends_with('\n');
  if (!weights_constant && !is_whole) return std::nullopt;
  const std::optional<double> rate = text ? parse_rate(*text) : std::nullopt;
  if (rate) return rate;
  constexpr std::string_view kWanted = "a factor of the learning rate from 0 to 1000, such as 0.5";
  const std::string holds = !text           ? "cannot be read"
                            : text->empty() ? "is empty"
                                            : format("holds {}", in_quotes(*text));
  note_once(name, format("{}; legal is {}", holds, kWanted));
  return std::nullopt;
}

void ControlFolder::take(const ControlRequest& request) {
  const auto waiting = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& w) {
    return w.request.kind == request.kind;
  });
  if (waiting == waiting_.end()) return;
  for (const std::string& name : waiting->files) {
    const fs::path path = folder_ / name;
    const auto seen = seen_.find(name);
    const std::optional<UntrustedFile> found = find_file(AT_FDCWD, path.string());
    if (!found || seen == seen_.end()) continue;
    // Another factor, written since: a request of its own.
    if (request.kind == Kind::Rate && found->stamp != seen->second.stamp) continue;
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) continue;
    seen->second.is_refused = watches_files_ = true;
    note_once(name, format("cannot be removed: {}; it counts once, until it is changed",
                           std::strerror(errno)));
  }
  waiting_.erase(waiting);
}

void ControlFolder::note_once(const std::string& name, const std::string& text) {
  Seen& seen = seen_[name];
  if (seen.is_noted) return;
  seen.is_noted = true;
  notes_.push_back(format("{}: {} {}", folder_.string(), in_quotes(name), text));
}

std::vector<std::string> ControlFolder::take_notes() { return std::exchange(notes_, {}); }

}  // namespace bev
