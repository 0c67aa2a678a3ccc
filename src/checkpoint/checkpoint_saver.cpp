#include "checkpoint/checkpoint_saver.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/integer.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

// Without a copy in host memory, what is on its way from the device at a time.
constexpr size_t kWriteBytes = size_t{16} << 20;

// How long the first rank looks for what another has written: a network file system may show it
// late.
constexpr double kPatienceSeconds = 30;

std::string read_part(const fs::path& path) {
  const double start = seconds_now();
  std::error_code ignored;
  // The folder itself is of this rank: where it is gone, nothing will appear.
  while (!fs::exists(path, ignored) && fs::exists(path.parent_path(), ignored) &&
         seconds_now() - start < kPatienceSeconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return read_text(path);
}

CheckpointFile write_whole(const fs::path& folder, const std::string& name,
                           const std::string& content) {
  AtomicFile file(folder / name);
  file.write(content);
  file.commit();
  return {.name = name,
          .bytes = content.size(),
          .checksum = checksum_of(content),
          .holds_pieces = false};
}

}  // namespace

CheckpointSaver::CheckpointSaver(CheckpointFolder folder, Communicator& world, ParamStore& params,
                                 const Optimizer& optimizer, Options options)
    : folder_(std::move(folder)),
      world_(world),
      device_(params.device()),
      options_(std::move(options)) {
  add_group("weights", weights_to_save(params));
  if (options_.with_optimizer) add_group("optimizer", written_states(params, optimizer));
  if (options_.asynchronous) snapshot_.emplace(device_, pieces_);
}

CheckpointSaver::~CheckpointSaver() {
  if (work_.valid()) work_.wait();
}

void CheckpointSaver::add_group(const char* kind, std::vector<LocalPiece> pieces) {
  if (pieces.empty()) return;
  // Wide types first, so that each piece is aligned in the file.
  std::stable_sort(pieces.begin(), pieces.end(), [](const LocalPiece& a, const LocalPiece& b) {
    return size_of(a.piece.dtype) > size_of(b.piece.dtype);
  });
  groups_.push_back({kind, pieces_.size(), pieces.size()});
  std::move(pieces.begin(), pieces.end(), std::back_inserter(pieces_));
}

fs::path CheckpointSaver::part_file(int rank) const {
  return draft().path() / format("part-{:05d}.json", rank);
}

void CheckpointSaver::start_draft() const {
  require_disk_space(folder_.root().string(), folder_.root(), options_.bytes, "a checkpoint takes");
  draft().start();
}

CheckpointFile CheckpointSaver::write_group(const Group& group) {
  const fs::path path = draft().path() / format("{}-{:05d}-of-{:05d}.safetensors", group.kind,
                                                world_.rank(), world_.size());
  const std::span<const LocalPiece> pieces = std::span(pieces_).subspan(group.first, group.count);
  std::vector<TensorPiece> described;
  for (const LocalPiece& held : pieces) described.push_back(held.piece);
  PieceFileWriter file(path, std::move(described));
  std::vector<std::byte> chunk;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (snapshot_) {
      file.write(snapshot_->bytes_of_piece(group.first + i));
      continue;
    }
    const size_t bytes = pieces[i].piece.bytes();
    for (size_t at = 0; at < bytes; at += kWriteBytes) {
      chunk.resize(std::min(kWriteBytes, bytes - at));
      device_.download(pieces[i].data + at, chunk.data(), chunk.size());
      file.write(chunk);
    }
  }
  return file.finish();
}

void CheckpointSaver::write_part() {
  Json files = Json::array();
  for (const Group& group : groups_) files.push_back(to_json(write_group(group)));
  AtomicFile part(part_file(world_.rank()));
  part.write(files.dump());
  part.commit();
}

void CheckpointSaver::commit() {
  const fs::path path = draft().path();
  for (const auto& [name, content] : options_.extra_files)
    manifest_.files.push_back(write_whole(path, name, content));
  for (int rank = 0; rank < world_.size(); ++rank) {
    const fs::path part = part_file(rank);
    for (const Json& file : parse_json(read_part(part), part.string()))
      manifest_.files.push_back(parse_checkpoint_file(file, part.string()));
    fs::remove(part);
  }
  write_manifest(path, manifest_);
  report_.note = draft().commit();
  // What a disk in trouble did not let go.
  if (!last_succeeded_) folder_.clear_leftovers();
  for (const CheckpointFile& file : manifest_.files)
    report_.bytes += static_cast<double>(file.bytes);
  report_.seconds = seconds_now() - begun_;
  if (!options_.tidy) return;
  const std::string note = options_.tidy();
  if (!note.empty()) report_.note += (report_.note.empty() ? "" : "; ") + note;
}

void CheckpointSaver::start(std::function<void()> work, bool here) {
  outcome_.reset();
  work_ = std::async(here ? std::launch::deferred : std::launch::async, std::move(work));
}

CheckpointSaver::Standing CheckpointSaver::standing() {
  if (!outcome_ && work_.wait_for(std::chrono::seconds(0)) != std::future_status::timeout) {
    try {
      work_.get();
      outcome_ = "";
    } catch (const std::exception& error) {
      outcome_ = error.what();
      if (outcome_->empty()) outcome_ = "no reason given";
    }
  }
  if (!outcome_) return Standing::Busy;
  return outcome_->empty() ? Standing::Done : Standing::Failed;
}

CheckpointSaver::Standing CheckpointSaver::agree(Standing mine, std::string& failure) {
  const int64_t ranks = world_.size();
  const int64_t worst =
      world_.all_reduce_max_host(static_cast<int64_t>(mine) * ranks + world_.rank());
  const auto standing = static_cast<Standing>(worst / ranks);
  if (standing == Standing::Failed)
    failure = mine == Standing::Failed
                  ? *outcome_
                  : format("rank {} could not write, and says why", worst % ranks);
  return standing;
}

void CheckpointSaver::save(Manifest manifest) {
  const double asked = seconds_now();
  finish();
  begun_ = seconds_now();
  manifest_ = std::move(manifest);
  report_ = {.iteration = manifest_.iteration};
  std::string failure;
  // The folder must be there before others write into it.
  start(
      [this] {
        if (is_first()) start_draft();
      },
      true);
  if (agree(standing(), failure) == Standing::Failed) return end(std::move(failure));
  if (snapshot_) {
    snapshot_->take();
  } else {
    // Shares of parameters may still be on their way from other ranks.
    device_.comm_stream().synchronize();
  }
  start([this] { write_part(); }, !snapshot_);
  phase_ = Phase::Writing;
  report_.pause = seconds_now() - asked;
  if (snapshot_) return;
  finish();
}

void CheckpointSaver::poll() {
  if (phase_ == Phase::Idle) return;
  std::string failure;
  const Standing all = agree(standing(), failure);
  if (all == Standing::Busy) return;
  if (all == Standing::Failed || phase_ == Phase::Committing) return end(std::move(failure));
  phase_ = Phase::Committing;
  start(
      [this] {
        if (is_first()) commit();
      },
      !snapshot_ || !is_first());
}

void CheckpointSaver::end(std::string failure) {
  phase_ = Phase::Idle;
  if (!failure.empty() && is_first()) draft().drop();
  if (report_.seconds == 0) report_.seconds = seconds_now() - begun_;
  if (!snapshot_) report_.pause = report_.seconds;
  report_.failed_here = outcome_ && !outcome_->empty();
  report_.failure = std::move(failure);
  last_succeeded_ = report_.failure.empty();
  if (options_.ended) options_.ended(report_);
}

bool CheckpointSaver::finish() {
  std::chrono::milliseconds rest(1);
  while (phase_ != Phase::Idle) {
    const Phase before = phase_;
    poll();
    if (phase_ != before) continue;
    std::this_thread::sleep_for(rest);
    rest = std::min(2 * rest, std::chrono::milliseconds(50));
  }
  return last_succeeded_;
}

namespace {

// Behind a parameter of a flat buffer there is a gap of fewer elements than these.
constexpr int64_t kGapLimit = ParamStore::kFlatAlignment;

}  // namespace

HostSnapshot::HostSnapshot(Device& device, std::span<const LocalPiece> pieces)
    : device_(device), begins_(pieces.size()) {
  for (const LocalPiece& held : pieces) sizes_.push_back(held.piece.bytes());
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const LocalPiece &x = pieces[a], &y = pieces[b];
    return std::pair(x.buffer, x.flat) < std::pair(y.buffer, y.flat);
  });
  int buffer = -1;
  int64_t end = 0;  // of the last piece, in the flat order
  for (const size_t index : order) {
    const LocalPiece& held = pieces[index];
    if (held.buffer == buffer && held.flat < end + kGapLimit) {
      const auto gap = static_cast<size_t>(held.flat - end) * size_of(held.piece.dtype);
      begins_[index] = bytes_ + gap;
      runs_.back().bytes += gap + held.piece.bytes();
    } else {
      begins_[index] = static_cast<size_t>(round_up(static_cast<int64_t>(bytes_), 64));
      runs_.push_back({held.data, begins_[index], held.piece.bytes()});
    }
    buffer = held.buffer;
    end = held.flat + held.piece.where.elements();
    bytes_ = begins_[index] + held.piece.bytes();
  }
  if (device.is_asynchronous()) {
    pinned_ = PinnedBuffer(device, bytes_);
  } else {
    buffer_.emplace(device, bytes_, "checkpoint copy");
    // The system gives memory when it is touched: now, and not in the first pause.
    constexpr size_t kPageBytes = 4096;
    for (size_t at = 0; buffer_->data() != nullptr && at < bytes_; at += kPageBytes)
      buffer_->data()[at] = std::byte{};
  }
}

void HostSnapshot::take() {
  // Shares of parameters may still be on their way from other ranks.
  device_.comm_stream().synchronize();
  const Stream stream = device_.compute_stream();
  for (const Run& run : runs_) device_.download_on(stream, run.from, memory() + run.at, run.bytes);
  stream.synchronize();
}

std::span<const std::byte> HostSnapshot::bytes_of_piece(size_t index) const {
  return {memory() + begins_[index], sizes_[index]};
}

}  // namespace bev
