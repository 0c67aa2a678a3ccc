// The plug-in for Gloo: TCP between processes, by a thread of its own.
//
// Gloo has no secret and no names: each end of a pair listens at a port of its own until the first
// connection comes, and takes it for the peer. Who can reach the address may therefore spoil a job
// while it starts, or read along; options.address should be one of a network that only the job's
// machines are in. Nothing listens at other addresses, and nothing after all groups are made.
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <net/if.h>
#include <netdb.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <vector>

#include "comm/host_engine.h"

namespace bev {

namespace {

using Buffer = gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

// Gloo's collectives have slots with other first bytes.
constexpr uint64_t kLaneSlots = uint64_t{0x40} << 56, kExchangeSlot = uint64_t{0x41} << 56;

// Gloo throws exceptions of several kinds, with the places in its sources first.
template <class F>
auto in_its_words(const F& call) {
  try {
    return call();
  } catch (const std::runtime_error&) {
    throw;
  } catch (const std::exception& e) {
    throw std::runtime_error(e.what());
  }
}

// The names of a group in the store of the job.
class GroupStore final : public gloo::rendezvous::Store {
 public:
  GroupStore(KeyValueStore& store, const std::string& name)
      : store_(store), prefix_("gloo/" + name + "/") {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.put(prefix_ + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get(prefix_ + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) store_.get(prefix_ + key);
  }
  // The store has its own limit.
  void wait(const std::vector<std::string>& keys, const milliseconds&) override { wait(keys); }

 private:
  KeyValueStore& store_;
  std::string prefix_;
};

class GlooGroup final : public HostGroup {
 public:
  GlooGroup(std::shared_ptr<gloo::transport::Device> device, KeyValueStore& store, int rank,
            int size, const std::string& name, milliseconds timeout)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, size)), timeout_(timeout) {
    in_its_words([&] {
      context_->setTimeout(timeout);
      GroupStore names(store, name);
      context_->connectFullMesh(names, device);
    });
  }

  uint64_t all_to_all(std::span<const std::span<const std::byte>> out,
                      std::span<const std::span<std::byte>> in) override {
    Posted& posted = posted_[++last_];
    in_its_words([&] {
      const int size = context_->size, rank = context_->rank;
      // Everybody begins with another peer. Gloo sends what its receiver is known to wait for.
      for (int i = 1; i < size; ++i) {
        const int from = (rank + size - i) % size;
        const std::span<std::byte> part = in[index(from)];
        if (part.empty()) continue;
        posted.incoming.push_back(over(part.data(), part.size()));
        posted.incoming.back()->recv(from, kExchangeSlot);
      }
      for (int i = 1; i < size; ++i) {
        const int to = (rank + i) % size;
        const std::span<const std::byte> part = out[index(to)];
        if (part.empty()) continue;
        posted.outgoing.push_back(over(part.data(), part.size()));
        posted.outgoing.back()->send(to, kExchangeSlot);
      }
    });
    return last_;
  }

  void all_gather(const std::byte* own, std::byte* all, std::span<const size_t> bytes) override {
    const size_t own_bytes = bytes[index(context_->rank)];
    parts_.clear();
    shares_.assign(bytes.size(), {own, own_bytes});
    size_t total = 0;
    for (const size_t count : bytes) {
      parts_.emplace_back(all + total, count);
      total += count;
    }
    const uint64_t number = all_to_all(shares_, parts_);
    std::byte* place = parts_[index(context_->rank)].data();
    if (place != own) std::copy_n(own, own_bytes, place);
    await(number);
  }

  void broadcast(std::byte* data, size_t bytes, int root) override {
    if (bytes == 0) return;
    in_its_words([&] {
      gloo::BroadcastOptions options(context_);
      options.setOutput(reinterpret_cast<char*>(data), bytes);
      options.setRoot(root);
      options.setTimeout(timeout_);
      gloo::broadcast(options);
    });
  }

  uint64_t send(const std::byte* data, size_t bytes, int to, int lane) override {
    Posted& posted = posted_[++last_];
    if (bytes == 0) return last_;
    in_its_words([&] {
      posted.outgoing.push_back(over(data, bytes));
      posted.outgoing.back()->send(to, kLaneSlots + static_cast<uint64_t>(lane));
    });
    return last_;
  }

  void await(uint64_t number) override {
    const auto found = posted_.find(number);
    if (found == posted_.end()) throw std::runtime_error("nothing was posted under this number");
    in_its_words([&] {
      for (const std::unique_ptr<Buffer>& buffer : found->second.outgoing)
        buffer->waitSend(timeout_);
      for (const std::unique_ptr<Buffer>& buffer : found->second.incoming)
        buffer->waitRecv(timeout_);
    });
    posted_.erase(found);
  }

  void recv(std::byte* data, size_t bytes, int from, int lane) override {
    if (bytes == 0) return;
    in_its_words([&] {
      const std::unique_ptr<Buffer> buffer = over(data, bytes);
      buffer->recv(from, kLaneSlots + static_cast<uint64_t>(lane));
      buffer->waitRecv(timeout_);
    });
  }

  void sum(float* inout, size_t count) override {
    in_its_words([&] {
      gloo::AllreduceOptions options(context_);
      options.setOutput(inout, count);
      options.setReduceFunction(
          [](void* c, const void* a, const void* b, size_t n) { gloo::sum<float>(c, a, b, n); });
      options.setTimeout(timeout_);
      gloo::allreduce(options);
    });
  }

 private:
  struct Posted {
    std::vector<std::unique_ptr<Buffer>> outgoing, incoming;
  };

  static size_t index(int member) { return static_cast<size_t>(member); }

  std::unique_ptr<Buffer> over(const std::byte* data, size_t bytes) const {
    // What is only sent is only read.
    return context_->createUnboundBuffer(const_cast<std::byte*>(data), bytes);
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  milliseconds timeout_;
  uint64_t last_ = 0;
  std::map<uint64_t, Posted> posted_;
  std::vector<std::span<const std::byte>> shares_;
  std::vector<std::span<std::byte>> parts_;
};

// Gloo does not notice that a name has no address.
void require_address(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0)
    throw std::runtime_error("'" + host + "' has no address: " + std::string(::gai_strerror(code)));
  ::freeaddrinfo(found);
}

gloo::transport::tcp::attr place_of(const std::string& address) {
  gloo::transport::tcp::attr place;
  if (!address.empty() && ::if_nametoindex(address.c_str()) != 0) {
    place.iface = address;
    return place;
  }
  place.hostname = address;
  if (address.empty()) {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    place.hostname = name.data();
  }
  require_address(place.hostname);
  return place;
}

class GlooEngine final : public HostEngine {
 public:
  explicit GlooEngine(const HostEngineOptions& options)
      : rank_(options.rank),
        store_(*options.store),
        timeout_(std::max<int64_t>(1, static_cast<int64_t>(1000 * options.timeout_seconds))) {
    // Gloo writes to connections whose other end may be gone.
    struct sigaction now{};
    if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
      now.sa_handler = SIG_IGN;
      ::sigaction(SIGPIPE, &now, nullptr);
    }
    device_ =
        in_its_words([&] { return gloo::transport::tcp::CreateDevice(place_of(options.address)); });
  }

  // Gloo's words are "tcp, pci=, iface=lo, speed=-1, addr=[127.0.0.1]".
  std::string describe() const override {
    const std::string all = device_->str();
    const auto between = [&](const std::string& before, char behind) {
      const size_t from = all.find(before);
      if (from == std::string::npos) return std::string("?");
      const size_t begin = from + before.size();
      return all.substr(begin, all.find(behind, begin) - begin);
    };
    return "Gloo over TCP at " + between("addr=[", ']') + " (" + between("iface=", ',') + ")";
  }

  std::unique_ptr<HostGroup> group(std::span<const int> ranks, const std::string& name) override {
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    if (own == ranks.end()) throw std::runtime_error("a group is made by its members only");
    return std::make_unique<GlooGroup>(device_, store_, static_cast<int>(own - ranks.begin()),
                                       static_cast<int>(ranks.size()), name, timeout_);
  }

 private:
  int rank_;
  KeyValueStore& store_;
  milliseconds timeout_;
  std::shared_ptr<gloo::transport::Device> device_;
};

}  // namespace

}  // namespace bev

extern "C" __attribute__((visibility("default"))) bev::HostEngine* bevatron_make_host_engine(
    const bev::HostEngineOptions& options) {
  return new bev::GlooEngine(options);
}
