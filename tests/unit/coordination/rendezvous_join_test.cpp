// Who comes into a job and who does not. Every rank is a thread.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/format.h"
#include "net/socket.h"
#include "support/expect_error.h"
#include "unit/coordination/job.h"

namespace bev {
namespace {

using std::chrono::milliseconds;
using test::expect_error;
using test::Job;

Socket stranger(int port) {
  std::string why;
  Socket socket = try_to_connect(resolve("127.0.0.1", port),
                                 std::chrono::steady_clock::now() + std::chrono::seconds(5), why);
  EXPECT_TRUE(socket.is_open()) << why;
  return socket;
}

void say(const Socket& socket, std::string_view text) {
  (void)::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

void agree_and_finish(const Job& job, CoordinationClient& control) {
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(control.all_reduce_max(job.all(), control.rank() + i), job.size() - 1 + i);
  control.finish();
}

TEST(RendezvousJoin, InAnyOrder) {
  for (const bool first_is_late : {false, true}) {
    Job job(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      const int rank = first_is_late ? 3 - i : i;
      threads.emplace_back([&, rank] {
        job.run_rank(rank, [&](CoordinationClient& control) { agree_and_finish(job, control); });
      });
      std::this_thread::sleep_for(milliseconds(60));
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(job.all_errors(), "");
    EXPECT_EQ(job.all_failures(), "");
  }
}

// The address exists, the listener does not yet.
TEST(RendezvousJoin, TheFirstRankListensLate) {
  int port = 0;
  {
    const ListenPort taken("127.0.0.1", 0);
    port = taken.port();
  }
  Job job(2);
  job.change = [&](CoordinationClient::Options& o) { o.port = port; };
  std::thread early([&] {
    job.run_rank(1, [&](CoordinationClient& control) { agree_and_finish(job, control); });
  });
  EXPECT_TRUE(job.notes[1].wait_for(
      format("rank 1 cannot reach the first rank at 127.0.0.1:{} yet: Connection refused", port)));
  job.change = [&](CoordinationClient::Options& o) { o.listener.emplace("127.0.0.1", port); };
  job.run_rank(0, [&](CoordinationClient& control) { agree_and_finish(job, control); });
  early.join();
  EXPECT_EQ(job.all_errors(), "");
}

TEST(RendezvousJoin, NobodyListens) {
  Job job(2);
  job.change = [](CoordinationClient::Options& o) {
    o.port = ListenPort("127.0.0.1", 0).port();
    o.join_limit = milliseconds(300);
  };
  job.run({1}, [](CoordinationClient&) { ADD_FAILURE(); });
  EXPECT_EQ(job.errors[1].count("rank 1 cannot reach the first rank at 127.0.0.1:"), 1)
      << job.all_errors();
}

TEST(RendezvousJoin, MissingRanksAreNamed) {
  Job job(8);
  job.change = [](CoordinationClient::Options& o) { o.join_limit = milliseconds(800); };
  job.run({0, 1, 2, 4}, [](CoordinationClient&) { ADD_FAILURE(); });
  for (const size_t rank : {0, 1, 2, 4})
    EXPECT_EQ(job.errors[rank].count("ranks 3, 5-7 of 8"), 1) << job.all_errors();
}

// The job goes on without those who do not belong to it.
TEST(RendezvousJoin, WhoDoesNotBelongIsRefusedWithTheReason) {
  Job job(3);
  Job other(3);
  std::vector<std::thread> threads;
  const auto start = [&](int rank) {
    threads.emplace_back([&, rank] {
      job.run_rank(rank, [&](CoordinationClient& control) {
        if (control.rank() == 0) {
          // All are here: somebody else is answered all the same.
          expect_error(ErrorKind::Comm, "this job is complete", [&] {
            CoordinationClient::Options late = other.options(1);
            late.port = job.port();
            const CoordinationClient never(std::move(late));
          });
        }
        agree_and_finish(job, control);
      });
    });
  };
  start(0);
  start(1);
  const auto expect_refusal = [&](const std::string& why,
                                  const std::function<void(CoordinationClient::Options&)>& change) {
    CoordinationClient::Options o = other.options(2);
    o.port = job.port();
    change(o);
    const std::string message =
        expect_error(ErrorKind::Comm, why, [&] { const CoordinationClient never(std::move(o)); });
    EXPECT_NE(message.find(format("127.0.0.1:{}", job.port())), std::string::npos) << message;
    EXPECT_TRUE(job.notes[0].wait_for(why)) << job.notes[0].text();
  };
  // Rank 1 is on its way: whoever comes second is refused.
  EXPECT_TRUE(job.notes[0].wait_for("waiting for rank 2 of 3")) << job.notes[0].text();
  expect_refusal("rank 1 (host host-1, pid", [](CoordinationClient::Options& o) { o.rank = 1; });
  expect_refusal("the job has 4 ranks", [](CoordinationClient::Options& o) { o.size = 4; });
  expect_refusal("belongs to the job 'job 2'",
                 [](CoordinationClient::Options& o) { o.job = "job 2"; });
  expect_refusal("another secret", [](CoordinationClient::Options& o) { o.secret = "guessed"; });
  start(2);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(job.all_errors(), "");
  EXPECT_EQ(job.all_failures(), "");
}

// A rank that dies before all are there may come again.
TEST(RendezvousJoin, ARankMayComeAgain) {
  Job job(3);
  std::thread first([&] {
    job.run_rank(0, [&](CoordinationClient& control) { agree_and_finish(job, control); });
  });
  {
    Job other(3);
    CoordinationClient::Options o = other.options(1);
    o.port = job.port();
    o.join_limit = milliseconds(100);  // and leaves, 2 s later
    expect_error(ErrorKind::Comm, "has waited",
                 [&] { const CoordinationClient never(std::move(o)); });
  }
  EXPECT_TRUE(job.notes[0].wait_for("rank 1 (host host-1, pid")) << job.notes[0].text();
  job.run({1, 2}, [&](CoordinationClient& control) { agree_and_finish(job, control); });
  first.join();
  EXPECT_EQ(job.all_errors(), "");
}

// Strangers of all kinds, while a job joins and works.
TEST(RendezvousJoin, StrangersChangeNothing) {
  Job job(3);
  std::vector<Socket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(stranger(job.port()));
  std::vector<std::thread> threads;
  for (const int rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      job.run_rank(rank, [&](CoordinationClient& control) {
        for (int i = 0; i < 30; ++i) {
          EXPECT_EQ(control.all_reduce_max(job.all(), i), i);
          if (rank == 0) {
            const Socket scanner = stranger(job.port());
            const Socket browser = stranger(job.port());
            say(browser, "GET / HTTP/1.1\r\nHost: here\r\nAccept: everything, please\r\n\r\n");
          }
        }
        control.finish();
      });
    });
  }
  say(stranger(job.port()), std::string(100000, '\xff'));
  for (int i = 0; i < 400; ++i) silent.push_back(stranger(job.port()));
  threads.emplace_back([&] {
    job.run_rank(2, [&](CoordinationClient& control) {
      for (int i = 0; i < 30; ++i) EXPECT_EQ(control.all_reduce_max(job.all(), i), i);
      control.finish();
    });
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(job.all_errors(), "");
  EXPECT_EQ(job.all_failures(), "");
  const int notes = job.notes[0].count("refused");
  EXPECT_GE(notes, 5) << job.notes[0].text();
  EXPECT_LE(notes, 8) << job.notes[0].text();
}

// The oldest goes, long before its time is over.
TEST(RendezvousJoin, TooManyStrangersAtOnce) {
  Job job(1);
  std::vector<Socket> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(stranger(job.port()));
  job.run([&](CoordinationClient& control) {
    EXPECT_TRUE(job.notes[0].wait_for("too many connections wait")) << job.notes[0].text();
    control.finish();
  });
  EXPECT_EQ(job.all_errors(), "");
}

// A server with another secret learns nothing but a hello.
TEST(RendezvousJoin, NothingIsToldToAServerWithAnotherSecret) {
  Job impostor(2);
  impostor.change = [](CoordinationClient::Options& o) {
    o.secret = "guessed";
    o.join_limit = milliseconds(500);
  };
  std::thread server([&] { impostor.run({0}, [](CoordinationClient&) { ADD_FAILURE(); }); });
  Job job(2);
  job.change = [&](CoordinationClient::Options& o) { o.port = impostor.port(); };
  job.run({1}, [](CoordinationClient&) { ADD_FAILURE(); });
  EXPECT_EQ(job.errors[1].count("it has another secret"), 1) << job.all_errors();
  server.join();
  EXPECT_EQ(impostor.notes[0].count("it has another secret"), 1) << impostor.notes[0].text();
}

TEST(RendezvousJoin, AnotherProgramListens) {
  const Socket listener = listen_on("127.0.0.1", 0);
  Job job(2);
  job.change = [&](CoordinationClient::Options& o) {
    o.port = address_here(listener.get()).port();
  };
  std::thread rank([&] { job.run({1}, [](CoordinationClient&) { ADD_FAILURE(); }); });
  pollfd entry{.fd = listener.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&entry, 1, 15000), 1);
  const Socket client(::accept(listener.get(), nullptr, nullptr));
  say(client, "220 mail.example ESMTP at your service, which is " + std::string(100, '-'));
  rank.join();
  EXPECT_EQ(job.errors[1].count("it is no rank"), 1) << job.all_errors();
}

}  // namespace
}  // namespace bev
