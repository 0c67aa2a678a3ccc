// Trainings of several processes, started as people start them, to be disturbed by tests.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace bev::test {

enum class Start : uint8_t {
  Launch,  // bevatron launch
  Mpirun,
  Hand,  // with RANK, WORLD_SIZE, ... set
};

std::string name_of(Start start);
// Why it cannot be done here; empty: it can.
std::string why_not(Start start);

// A process that is a child of this one.
struct Child {
  pid_t process = -1;
  std::optional<int> code{};  // 128 + N where signal N ended it
};

// Processes that belong together, and all that they start. What they print goes to two files. All
// are killed when it goes.
class Job {
 public:
  explicit Job(int ranks);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // A training of made-up data that goes on until it is disturbed, with more arguments.
  void train(Start start, const std::vector<std::string>& more);
  // One rank, by hand. `folder`: where it works; empty: here.
  void train_rank(int rank, const std::vector<std::string>& more, const std::string& folder = "");
  void start(const std::vector<std::string>& command,
             const std::map<std::string, std::string>& variables, const std::string& folder = "");

  int ranks() const { return ranks_; }
  // Where ranks by hand meet.
  int port() const { return port_; }
  void set_port(int port) { port_ = port; }
  std::string secret = "a secret of the tests, long enough";
  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path output() const { return folder_ / "run"; }

  // All that was printed so far.
  std::string err() const { return printed("err"); }
  std::string out() const { return printed("out"); }
  // What rank `rank` says in its own log.
  std::string log(int rank) const;
  // Waits until stderr, or stdout, has such a text. An error of the test where it has not in time.
  bool await_err(const std::string& text, double seconds = 30);
  bool await_out(const std::string& text, double seconds = 30);
  // Until the training has made its first steps.
  bool await_training() { return await_out(" iteration "); }

  // The process of a rank; -1: it does not run.
  pid_t process_of(int rank) const;
  // All that run and belong to it.
  std::vector<pid_t> running() const;
  void signal(int rank, int number) const;

  // Waits for all processes, also those that others started. The seconds that it took; empty where
  // some still run after `limit`.
  std::optional<double> await_end(double limit);
  // In the order of their start. REQUIRES: ended.
  const std::vector<Child>& children();

 private:
  std::string printed(const char* name) const;
  bool await(const char* file, const std::string& text, double seconds);
  void collect();

  int ranks_;
  int port_;
  TemporaryDirectory folder_;
  std::string mark_;  // in the environment of all that belong to it
  std::vector<Child> children_;
};

// The arguments of a small training that ends after `iterations`.
std::vector<std::string> small_training(int64_t iterations);
std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b);

// How often `part` is in `text`.
size_t count(const std::string& text, const std::string& part);
// The last number of `lm loss: ` in a log; "" where there is none.
std::string last_loss(const std::string& log);

double seconds_now();
void pause(double seconds);

}  // namespace bev::test
