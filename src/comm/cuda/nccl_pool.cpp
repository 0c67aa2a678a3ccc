#include "comm/cuda/nccl_pool.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <random>
#include <span>

#include "base/check.h"
#include "base/crypto.h"
#include "comm/cuda/nccl_peer_info.h"
#include "coordination/rank_text.h"
#include "device/cuda/cuda_device.h"

namespace bev::cuda {

namespace {

constexpr std::chrono::milliseconds kWatchInterval{500};
// A send that waits for its receiver holds this many multiprocessors meanwhile.
constexpr int kLaneCtas = 4;

// For keys, which are short.
std::string key_of(const std::vector<int>& ranks) {
  constexpr size_t kMost = 200;
  std::string list = format("{}", fmt::join(ranks, ", "));
  return list.size() <= kMost ? list : sha256(std::as_bytes(std::span(list)));
}

std::string as_hex(const ncclUniqueId& id) {
  std::string text;
  for (const char c : id.internal) text += format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

ncclUniqueId from_hex(const std::string& text) {
  ncclUniqueId id{};
  BEV_CHECK(text.size() == 2 * sizeof id.internal, Comm,
            "the name of a group of NCCL has {} characters instead of {}", text.size(),
            2 * sizeof id.internal);
  for (size_t i = 0; i < sizeof id.internal; ++i) {
    id.internal[i] = static_cast<char>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  }
  return id;
}

void begin_watch(NcclComm::PendingCall& watched, const char* what, uint64_t number,
                 cudaStream_t stream) {
  if (watched.done == nullptr) {
    check_cuda(cudaEventCreateWithFlags(&watched.done, cudaEventDisableTiming), "making an event");
  }
  check_cuda(cudaEventRecord(watched.done, stream), "recording an event");
  watched.what = what;
  watched.number = number;
  watched.since = std::chrono::steady_clock::now();
}

}  // namespace

NcclPipe::~NcclPipe() {
  for (const Posted& posted : posted_) cudaEventDestroy(posted.done);
  for (cudaEvent_t event : idle_) cudaEventDestroy(event);
  if (stream != nullptr) cudaStreamDestroy(stream);
}

uint64_t NcclPipe::mark() {
  if (idle_.empty()) {
    cudaEvent_t made = nullptr;
    check_cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event");
    idle_.push_back(made);
  }
  posted_.push_back({++sent_, idle_.back()});
  idle_.pop_back();
  check_cuda(cudaEventRecord(posted_.back().done, stream), "recording an event");
  return sent_;
}

void NcclPipe::await(cudaStream_t waiting, uint64_t number) {
  const auto found = std::find_if(posted_.begin(), posted_.end(),
                                  [&](const Posted& each) { return each.number == number; });
  BEV_CHECK(found != posted_.end(), Internal, "send {} of {} is awaited, but is not on its way",
            number, sent_);
  check_cuda(cudaStreamWaitEvent(waiting, found->done, 0), "waiting for a send");
  // The stream waits for the event as it was recorded; it may be recorded again.
  idle_.push_back(found->done);
  posted_.erase(found);
}

NcclPool::NcclPool(CudaDevice& device, CoordinationClient& control, std::chrono::seconds limit)
    : device_(device),
      control_(control),
      limit_(limit),
      exceptions_at_start_(std::uncaught_exceptions()) {
  check_cuda(cudaGetDevice(&ordinal_), "asking which GPU is in use");
  std::array<char, 64> bus{};
  check_cuda(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), ordinal_), "asking");
  gpu_ = bus.data();
  exchange_peer_info();
  check_cuda(cudaStreamCreateWithFlags(&first_, cudaStreamNonBlocking), "making a stream");
  void* byte = nullptr;
  check_cuda(cudaMalloc(&byte, 1), "allocating memory");
  one_byte_ = static_cast<std::byte*>(byte);
  watcher_ = std::thread([this] { watch(); });
}

NcclPool::~NcclPool() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  bell_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  const std::lock_guard lock(mutex_);
  if (failure_.empty() && std::uncaught_exceptions() <= exceptions_at_start_ &&
      cudaDeviceSynchronize() == cudaSuccess) {
    // Members wait for each other here too, so that all end theirs in an order that all share.
    for (auto comm = comms_.rbegin(); comm != comms_.rend(); ++comm) nccl_.destroy(comm->handle);
  } else {
    abort_all();
  }
  for (const NcclComm& comm : comms_) {
    if (comm.watched.done != nullptr) cudaEventDestroy(comm.watched.done);
  }
  if (one_byte_ != nullptr) cudaFree(one_byte_);
  if (first_ != nullptr) cudaStreamDestroy(first_);
}

// Two ranks on one GPU, or of two versions, are found here: NCCL's own words for it are no help.
void NcclPool::exchange_peer_info() {
  std::random_device random;
  const NcclPeerInfo here{.world = format("{:08x}{:08x}", random(), random()),
                          .version = nccl_.version,
                          .machine = machine_name(),
                          .gpu = gpu_};
  std::vector<NcclPeerInfo> all;
  for (const std::string& text : control_.all_gather(to_text(here)))
    all.push_back(parse_peer_info(text));
  check_peer_infos(all);
  prefix_ = "nccl " + all.front().world;
}

ncclUniqueId NcclPool::id_under(const std::string& key, bool is_first) {
  if (!is_first) return from_hex(control_.get(key));
  ncclUniqueId id{};
  const ncclResult_t result = nccl_.unique_id(&id);
  if (result != ncclSuccess)
    fail(format("NCCL, naming a new group: {}", nccl_.words(result, nullptr)));
  control_.put(key, as_hex(id));
  return id;
}

// Blocking, as all calls of this program are: without it NCCL starts a thread for every call. That
// all members are there has been agreed on before.
NcclComm& NcclPool::join(std::vector<int> ranks, ncclUniqueId id, int most_ctas) {
  const auto here = std::find(ranks.begin(), ranks.end(), control_.rank());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  if (most_ctas > 0) config.maxCTAs = most_ctas;
  ncclComm_t made = nullptr;
  ncclResult_t result = nccl_.init(&made, static_cast<int>(ranks.size()), id,
                                   static_cast<int>(here - ranks.begin()), &config);
  if (made != nullptr) result = settled(made, result);
  if (result != ncclSuccess) {
    fail(format("NCCL, making the group of {}: {}", ranks_text(ranks),
                nccl_.words(result, nullptr)));
  }
  const std::lock_guard lock(mutex_);
  return comms_.emplace_back(NcclComm{.ranks = std::move(ranks), .handle = made});
}

NcclComm& NcclPool::group(const std::vector<int>& ranks, int stream) {
  NcclComm*& known = groups_[{ranks, stream}];
  if (known == nullptr) {
    check_alive();
    const ncclUniqueId id =
        id_under(format("{} group {} stream {}", prefix_, key_of(ranks), stream),
                 ranks.front() == control_.rank());
    std::vector<int> ascending = ranks;
    std::sort(ascending.begin(), ascending.end());
    control_.barrier(ascending);
    known = &join(ranks, id, 0);
  }
  return *known;
}

NcclPipe& NcclPool::lane(int from, int to, Channel channel) {
  NcclPipe& lane = lanes_[{from, to, channel}];
  if (lane.comm == nullptr) open(lane, from, to, channel);
  return lane;
}

// The two meet by keys: a barrier of theirs could come at another place among the barriers of their
// groups.
void NcclPool::open(NcclPipe& lane, int from, int to, Channel channel) {
  check_alive();
  const bool sends = control_.rank() == from;
  const std::string key =
      format("{} lane {} to {} channel {}", prefix_, from, to, static_cast<int>(channel));
  const ncclUniqueId id = id_under(key, sends);
  if (sends) {
    control_.get(key + " reached");
    // Above the priority of other streams, which also keeps it out of their queues.
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    check_cuda(cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, greatest),
               "making a stream");
  } else {
    control_.put(key + " reached", "1");
  }
  NcclComm& comm = join({from, to}, id, kLaneCtas);
  // The first use connects the two and waits on the host until both have come.
  call(comm, sends ? "first send" : "first recv", tensor_over(one_byte_, DType::u8, {1}), first_,
       [&](ncclComm_t handle) {
         return sends ? nccl_.send(one_byte_, 1, ncclUint8, NcclPipe::kReceiver, handle, first_)
                      : nccl_.recv(one_byte_, 1, ncclUint8, NcclPipe::kSender, handle, first_);
       });
  check_cuda(cudaStreamSynchronize(first_), "waiting for the first use of a pipe");
  lane.comm = &comm;
}

// Whoever set NCCL_COMM_BLOCKING=0 has overruled the configuration.
ncclResult_t NcclPool::settled(ncclComm_t comm, ncclResult_t result) const {
  while (result == ncclInProgress) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const ncclResult_t asked = nccl_.async_error(comm, &result);
    if (asked != ncclSuccess) return asked;
  }
  return result;
}

void NcclPool::call(NcclComm& comm, const char* what, const ConstTensor& tensor,
                    cudaStream_t stream, FunctionRef<ncclResult_t(ncclComm_t)> issue) {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    BEV_CHECK(failure_.empty(), Comm, "NCCL is out of use since: {}", failure_);
    ++comm.calls;
    const ncclResult_t result = settled(comm.handle, issue(comm.handle));
    if (result == ncclSuccess) {
      if (comm.watched.what == nullptr) begin_watch(comm.watched, what, comm.calls, stream);
      return;
    }
    why = nccl_.words(result, comm.handle);
  }
  fail(format("NCCL {} of {} in {} with {} (call {} of the group): {}", what,
              as_bytes(static_cast<double>(bytes_of(tensor))), name_of(tensor.dtype),
              ranks_text(comm.ranks), comm.calls, why));
}

// Kernels that wait for a rank that is gone would keep this process from ending in order.
void NcclPool::fail(const std::string& what_happened) {
  try {
    control_.fail_with(what_happened);
  } catch (...) {
    stop(what_happened);
    throw;
  }
}

void NcclPool::stop(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
  abort_all();
}

void NcclPool::check_alive() const {
  const std::lock_guard lock(mutex_);
  BEV_CHECK(failure_.empty(), Comm, "NCCL is out of use since: {}", failure_);
}

// All at once: a kernel of one may wait behind that of another.
void NcclPool::abort_all() {
  nccl_.group_start();
  for (NcclComm& comm : comms_) {
    if (comm.handle != nullptr) nccl_.abort(comm.handle);
    comm.handle = nullptr;
  }
  nccl_.group_end();
}

std::string NcclPool::look_at(NcclComm& comm) const {
  ncclResult_t state = ncclSuccess;
  ncclResult_t result = nccl_.async_error(comm.handle, &state);
  if (result == ncclSuccess) result = state;
  if (result != ncclSuccess && result != ncclInProgress) {
    return format("NCCL, moving data among {} (call {} of the group or an earlier one): {}",
                  ranks_text(comm.ranks), comm.calls, nccl_.words(result, comm.handle));
  }
  NcclComm::PendingCall& watched = comm.watched;
  if (watched.what == nullptr) return {};
  // What else goes wrong on the GPU is found by the thread that uses it.
  if (cudaEventQuery(watched.done) != cudaErrorNotReady) {
    watched.what = nullptr;
  } else if (std::chrono::steady_clock::now() - watched.since > limit_) {
    return format(
        "NCCL {} with {} (call {} of the group) has not ended within {} s: a member has not come "
        "that far, or has made another call",
        watched.what, ranks_text(comm.ranks), watched.number, limit_.count());
  }
  return {};
}

void NcclPool::watch() {
  cudaSetDevice(ordinal_);
  std::unique_lock lock(mutex_);
  while (!bell_.wait_for(lock, kWatchInterval, [&] { return is_ending_; })) {
    if (!failure_.empty()) continue;
    std::string found;
    for (NcclComm& comm : comms_) {
      if (found.empty()) found = look_at(comm);
    }
    if (found.empty()) continue;
    lock.unlock();
    try {
      control_.fail_with(found);
    } catch (const std::exception&) {
      // The thread of the rank learns it at its next call; what it waits for now is broken off.
      stop(found);
    }
    lock.lock();
  }
}

}  // namespace bev::cuda
