#include "launch/process_world.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/check.h"
#include "comm/communicator.h"
#include "comm/host_communicator.h"
#include "comm/host_engine_loader.h"
#include "comm/nccl_world.h"
#include "launch/job_secret.h"
#include "net/address.h"

namespace bev {

namespace {

std::chrono::milliseconds from_seconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1e3 * seconds));
}

// As messages name it. Machines, or containers, of one name are told apart by their addresses.
std::string own_host(const std::string& address) {
  const bool is_one_node = address.starts_with("127.") || address == "::1";
  return host_name() + (is_one_node ? "" : " at " + address);
}

// Several fit into the time after which a rank is reported as late.
std::chrono::milliseconds heartbeat_for(double warning_seconds) {
  using std::chrono::milliseconds;
  return std::clamp(from_seconds(warning_seconds / 5), milliseconds(50), milliseconds(1000));
}

// Where the first rank listens, and the secret of the job.
struct Rendezvous {
  std::string host;
  int port = 0;
  std::string secret;
};

std::string rendezvous_text(const Rendezvous& rendezvous) {
  return format("{} {} {}", rendezvous.host, rendezvous.port, rendezvous.secret);
}

Rendezvous read_rendezvous(const std::string& text) {
  Rendezvous rendezvous;
  std::istringstream(text) >> rendezvous.host >> rendezvous.port >> rendezvous.secret;
  return rendezvous;
}

}  // namespace

ProcessWorld::ProcessWorld(const RankEnvironment& environment, const Options& options)
    : environment_(environment), parallel_(options.parallel) {
  if (environment_.by == LaunchedBy::Mpirun) {
    const MpiPlace place = mpi_place();
    environment_.rank = place.rank;
    environment_.size = place.size;
    environment_.local_rank = place.local_rank;
    environment_.local_size = place.local_size;
  }
  connect(options);
}

ProcessWorld::~ProcessWorld() = default;

void ProcessWorld::connect(const Options& options) {
  const bool is_first = environment_.rank == 0;
  const std::string named = parallel_.interface.empty() ? "" : local_address(parallel_.interface);
  std::optional<ListenPort> listener;
  Rendezvous rendezvous;
  if (environment_.by == LaunchedBy::Mpirun) {
    if (is_first) {
      const bool is_one_node = environment_.local_size == environment_.size;
      rendezvous.host = !named.empty() ? named
                        : is_one_node  ? "127.0.0.1"
                                       : local_address(host_name());
      listener.emplace(rendezvous.host, 0);
      rendezvous.port = listener->port();
      rendezvous.secret = random_secret();
    }
    rendezvous = read_rendezvous(mpi_broadcast(rendezvous_text(rendezvous)));
  } else {
    rendezvous = {environment_.master_host, environment_.master_port, job_secret(::getenv)};
    if (is_first) listener.emplace(named.empty() ? rendezvous.host : named, rendezvous.port);
  }
  control_at_ = format("{}:{}", rendezvous.host, rendezvous.port);
  own_address_ = named.empty() ? address_towards(rendezvous.host) : named;
  control_ = std::make_unique<CoordinationClient>(CoordinationClient::Options{
      .rank = environment_.rank,
      .size = environment_.size,
      .host = rendezvous.host,
      .port = rendezvous.port,
      .listener = std::move(listener),
      .secret = rendezvous.secret,
      .job = environment_.job,
      .own_host = own_host(own_address_),
      .join_limit = from_seconds(60 * parallel_.timeout_minutes),
      .heartbeat = heartbeat_for(parallel_.heartbeat_warning_seconds),
      .heartbeat_timeout = from_seconds(parallel_.heartbeat_warning_seconds),
      .limit = from_seconds(60 * parallel_.timeout_minutes),
      .log = options.note,
      .note_of_first = options.note_of_first,
      .on_failure = options.on_failure});
}

CommBackend ProcessWorld::backend_for(DeviceKind device) const {
  const bool is_gpu = device == DeviceKind::Cuda;
  const CommBackend asked = parallel_.backend;
  if (asked == CommBackend::Auto) {
    if (is_gpu) return CommBackend::Nccl;
    return environment_.by == LaunchedBy::Mpirun ? CommBackend::Mpi : CommBackend::Gloo;
  }
  BEV_CHECK(is_gpu == (asked == CommBackend::Nccl), Usage, "parallel.backend {}: {}",
            name_of_choice(asked),
            is_gpu ? "tensors of GPUs go by nccl" : "nccl is for GPUs; legal are mpi and gloo");
  BEV_CHECK(asked != CommBackend::Mpi || environment_.by == LaunchedBy::Mpirun, Usage,
            "parallel.backend mpi: mpirun did not start this process; legal are gloo and auto");
  return asked;
}

std::unique_ptr<Communicator> ProcessWorld::make_world(Device& device) {
  const CommBackend kind = backend_for(device.kind());
  if (kind == CommBackend::Nccl) {
    return make_nccl_world(device, *control_, engine_words_);
  }
  if (size() == 1) {
    engine_words_ = "nobody, as there is one";
    return std::make_unique<SingleCommunicator>();
  }
  if (engine_ == nullptr) {
    engine_ = load_host_engine(kind, {.rank = rank(),
                                      .size = size(),
                                      .store = control_.get(),
                                      .address = own_address_,
                                      .timeout_seconds = 60 * parallel_.timeout_minutes});
    engine_words_ = engine_->describe();
  }
  return std::make_unique<HostCommunicator>(*engine_, *control_);
}

std::string ProcessWorld::describe() const {
  std::set<std::string> hosts;
  for (int rank = 0; rank < control_->size(); ++rank) hosts.insert(control_->place(rank).host);
  return format("{} processes on {}, found by {}; tensors by {}; control at {}", control_->size(),
                hosts.size() == 1 ? "this host" : format("{} hosts", hosts.size()),
                environment_.words, engine_words_, control_at_);
}

void ProcessWorld::finish() { control_->finish(); }

}  // namespace bev
