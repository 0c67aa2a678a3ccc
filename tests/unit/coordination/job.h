// Jobs for tests: every rank a thread of this process, with a Control of its own.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coordination/coordination_client.h"

namespace bev::test {

using std::chrono::milliseconds;

// What callbacks were told, from any thread.
class Record {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(text);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }
  int count(const std::string& part) const {
    int found = 0;
    for (const std::string& text : all()) found += text.find(part) != std::string::npos ? 1 : 0;
    return found;
  }
  bool wait_for(const std::string& part, milliseconds limit = milliseconds(15000)) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (count(part) == 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }
  std::string text() const {
    std::string text;
    for (const std::string& each : all()) text += each + "\n";
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

class Job {
 public:
  explicit Job(int size)
      : notes(static_cast<size_t>(size)),
        failures(static_cast<size_t>(size)),
        errors(static_cast<size_t>(size)),
        size_(size),
        listener_(ListenPort("127.0.0.1", 0)),
        port_(listener_->port()) {}

  int size() const { return size_; }
  int port() const { return port_; }

  CoordinationClient::Options options(int rank) {
    CoordinationClient::Options o;
    o.rank = rank;
    o.size = size_;
    o.host = "127.0.0.1";
    o.port = port_;
    if (rank == 0) o.listener = std::move(listener_);
    o.secret = "the secret of the test";
    o.job = "job 1";
    o.own_host = "host-" + std::to_string(rank);
    o.join_limit = milliseconds(20000);
    o.heartbeat = milliseconds(50);
    o.heartbeat_timeout = milliseconds(5000);
    o.limit = milliseconds(20000);
    const auto at = static_cast<size_t>(rank);
    o.log = [this, at](const std::string& text) { notes[at].add(text); };
    o.on_failure = [this, at](const Failure& failure) { failures[at].add(failure.text()); };
    if (change) change(o);
    return o;
  }

  // One rank, here. Errors go to `errors`.
  void run_rank(int rank, const std::function<void(CoordinationClient&)>& body) {
    try {
      CoordinationClient control(options(rank));
      body(control);
    } catch (const std::exception& error) {
      errors[static_cast<size_t>(rank)].add(error.what());
    }
  }
  // The named ranks, each on a thread.
  void run(const std::vector<int>& ranks, const std::function<void(CoordinationClient&)>& body) {
    std::vector<std::thread> threads;
    threads.reserve(ranks.size());
    for (const int rank : ranks) threads.emplace_back([&, rank] { run_rank(rank, body); });
    for (std::thread& thread : threads) thread.join();
  }
  void run(const std::function<void(CoordinationClient&)>& body) { run(all(), body); }

  std::vector<int> all() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size_; ++rank) ranks.push_back(rank);
    return ranks;
  }
  std::string all_errors() const {
    std::string text;
    for (size_t rank = 0; rank < errors.size(); ++rank)
      for (const std::string& each : errors[rank].all())
        text += "rank " + std::to_string(rank) + ": " + each + "\n";
    return text;
  }
  std::string all_failures() const {
    std::string text;
    for (const Record& each : failures) text += each.text();
    return text;
  }

  std::function<void(CoordinationClient::Options&)> change;
  std::vector<Record> notes, failures, errors;  // by rank

 private:
  int size_;
  std::optional<ListenPort> listener_;
  int port_;
};

}  // namespace bev::test
