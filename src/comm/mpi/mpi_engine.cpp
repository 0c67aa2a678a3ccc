// The plug-in for MPI. It is a library of its own because MPI is the cluster's: the program starts
// where there is none.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <vector>

#include "comm/host_engine.h"
#include "comm/mpi_bootstrap.h"

namespace bev {

namespace {

// Counts of MPI are ints. Both ends of a message cut it alike.
constexpr size_t kMostBytes = size_t{1} << 30;
// Of the messages of all_to_all; lanes have the tags from 0.
constexpr int kExchangeTag = 32767;

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(call) + ": " +
                           std::string(text, static_cast<size_t>(length)));
}

// Calls f(offset, count) for the pieces of `bytes`.
template <class F>
void in_pieces(size_t bytes, const F& f) {
  for (size_t offset = 0; offset < bytes; offset += kMostBytes)
    f(offset, static_cast<int>(std::min(bytes - offset, kMostBytes)));
}

// One thread calls, the one that started MPI: MPI_THREAD_FUNNELED is enough.
void start_mpi() {
  int started = 0;
  MPI_Initialized(&started);
  if (started != 0) return;
  // Open MPI polls while it waits. With more threads than processors on a machine, who waits must
  // let those that compute go first; where nobody else wants the processor it costs nothing that
  // can be measured. What the user has set stays.
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (provided < MPI_THREAD_FUNNELED)
    throw std::runtime_error("this MPI cannot be used by a process with threads");
}

class MpiGroup final : public HostGroup {
 public:
  explicit MpiGroup(MPI_Comm comm) : comm_(comm) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }

  // Does not wait for others, who may be gone.
  ~MpiGroup() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    for (auto& [number, requests] : posted_) {
      for (MPI_Request& request : requests) {
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
      }
    }
    MPI_Comm_free(&comm_);
  }

  uint64_t all_to_all(std::span<const std::span<const std::byte>> out,
                      std::span<const std::span<std::byte>> in) override {
    std::vector<MPI_Request>& requests = posted_[++last_];
    // Everybody begins with another peer.
    for (int i = 1; i < size_; ++i) {
      const int from = (rank_ + size_ - i) % size_;
      receive(in[static_cast<size_t>(from)], from, kExchangeTag, requests);
    }
    for (int i = 1; i < size_; ++i) {
      const int to = (rank_ + i) % size_;
      post(out[static_cast<size_t>(to)], to, kExchangeTag, requests);
    }
    return last_;
  }

  void all_gather(const std::byte* own, std::byte* all, std::span<const size_t> bytes) override {
    size_t total = 0;
    counts_.clear();
    places_.clear();
    for (const size_t count : bytes) {
      counts_.push_back(static_cast<int>(std::min(count, size_t{INT_MAX})));
      places_.push_back(static_cast<int>(std::min(total, size_t{INT_MAX})));
      total += count;
    }
    if (total > INT_MAX) return gather_much(own, all, bytes);
    const auto me = static_cast<size_t>(rank_);
    const bool in_place = own == all + places_[me];
    check(MPI_Allgatherv(in_place ? MPI_IN_PLACE : own, in_place ? 0 : counts_[me], MPI_BYTE, all,
                         counts_.data(), places_.data(), MPI_BYTE, comm_),
          "MPI_Allgatherv");
  }

  void broadcast(std::byte* data, size_t bytes, int root) override {
    in_pieces(bytes, [&](size_t offset, int count) {
      check(MPI_Bcast(data + offset, count, MPI_BYTE, root, comm_), "MPI_Bcast");
    });
  }

  uint64_t send(const std::byte* data, size_t bytes, int to, int lane) override {
    post({data, bytes}, to, lane, posted_[++last_]);
    return last_;
  }

  void await(uint64_t number) override {
    const auto found = posted_.find(number);
    if (found == posted_.end()) throw std::runtime_error("nothing was posted under this number");
    std::vector<MPI_Request>& requests = found->second;
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
    posted_.erase(found);
  }

  void recv(std::byte* data, size_t bytes, int from, int lane) override {
    in_pieces(bytes, [&](size_t offset, int count) {
      check(MPI_Recv(data + offset, count, MPI_BYTE, from, lane, comm_, MPI_STATUS_IGNORE),
            "MPI_Recv");
    });
  }

  void sum(float* inout, size_t count) override {
    in_pieces(count, [&](size_t offset, int part) {
      check(MPI_Allreduce(MPI_IN_PLACE, inout + offset, part, MPI_FLOAT, MPI_SUM, comm_),
            "MPI_Allreduce");
    });
  }

 private:
  void post(std::span<const std::byte> data, int to, int tag, std::vector<MPI_Request>& requests) {
    in_pieces(data.size(), [&](size_t offset, int count) {
      check(MPI_Isend(data.data() + offset, count, MPI_BYTE, to, tag, comm_,
                      &requests.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Isend");
    });
  }

  void receive(std::span<std::byte> data, int from, int tag, std::vector<MPI_Request>& requests) {
    in_pieces(data.size(), [&](size_t offset, int count) {
      check(MPI_Irecv(data.data() + offset, count, MPI_BYTE, from, tag, comm_,
                      &requests.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Irecv");
    });
  }

  // More than the displacements of MPI_Allgatherv reach.
  void gather_much(const std::byte* own, std::byte* all, std::span<const size_t> bytes) {
    std::vector<std::span<const std::byte>> out;
    std::vector<std::span<std::byte>> in;
    size_t total = 0;
    for (const size_t count : bytes) {
      out.emplace_back(own, bytes[static_cast<size_t>(rank_)]);
      in.emplace_back(all + total, count);
      total += count;
    }
    const std::span<std::byte> place = in[static_cast<size_t>(rank_)];
    if (place.data() != own) std::copy_n(own, place.size(), place.data());
    await(all_to_all(out, in));
  }

  MPI_Comm comm_;
  int rank_ = 0, size_ = 1;
  uint64_t last_ = 0;
  std::map<uint64_t, std::vector<MPI_Request>> posted_;
  std::vector<int> counts_, places_;
};

// Members that make several groups at a time must not mix them up.
int tag_of(const std::string& name) {
  uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<int>(hash % 32767);  // every MPI has these tags
}

class MpiEngine final : public HostEngine {
 public:
  explicit MpiEngine(const HostEngineOptions& options) {
    start_mpi();
    int rank = 0, size = 1;
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
    if (rank != options.rank || size != options.size) {
      throw std::runtime_error(
          "this is rank " + std::to_string(options.rank) + " of " + std::to_string(options.size) +
          ", but MPI calls it " + std::to_string(rank) + " of " + std::to_string(size) +
          "; a job that moves its tensors by MPI is started by mpirun or by a launcher that MPI "
          "knows");
    }
  }
  // Waits for the other ranks.
  ~MpiEngine() override { MPI_Finalize(); }

  std::string describe() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
    // "Open MPI v4.1.4, package: ...", over several lines in other libraries
    const std::string all(text, static_cast<size_t>(length));
    std::string name = all.substr(0, all.find_first_of(",\n"));
    if (const size_t v = name.find("MPI v"); v != std::string::npos) name.erase(v + 4, 1);
    return name;
  }

  std::unique_ptr<HostGroup> group(std::span<const int> ranks, const std::string& name) override {
    MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    check(MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &members),
          "MPI_Group_incl");
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_create_group(MPI_COMM_WORLD, members, tag_of(name), &comm),
          "MPI_Comm_create_group");
    MPI_Group_free(&members);
    MPI_Group_free(&world);
    return std::make_unique<MpiGroup>(comm);
  }
};

MpiPlace place() {
  start_mpi();
  MpiPlace here;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &here.rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &here.size), "MPI_Comm_size");
  MPI_Comm machine = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
        "MPI_Comm_split_type");
  check(MPI_Comm_rank(machine, &here.local_rank), "MPI_Comm_rank");
  check(MPI_Comm_size(machine, &here.local_size), "MPI_Comm_size");
  MPI_Comm_free(&machine);
  return here;
}

std::string broadcast(const std::string& from_first) {
  start_mpi();
  uint64_t bytes = from_first.size();
  check(MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD), "MPI_Bcast");
  if (bytes > kMostBroadcast) {
    throw std::runtime_error("the first rank announces " + std::to_string(bytes) +
                             " bytes, but no more than " + std::to_string(kMostBroadcast) +
                             " are taken");
  }
  std::string text = from_first;
  text.resize(bytes);
  check(MPI_Bcast(text.data(), static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return text;
}

}  // namespace

}  // namespace bev

extern "C" __attribute__((visibility("default"))) bev::HostEngine* bevatron_make_host_engine(
    const bev::HostEngineOptions& options) {
  return new bev::MpiEngine(options);
}

extern "C" __attribute__((visibility("default"))) const bev::MpiBootstrap*
bevatron_mpi_bootstrap() {
  static constexpr bev::MpiBootstrap bootstrap{&bev::place, &bev::broadcast};
  return &bootstrap;
}
