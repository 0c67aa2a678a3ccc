// What comes to the control port and is no rank of the job does not disturb it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "processes/job.h"

namespace bev::test {
namespace {

class Stranger {
 public:
  explicit Stranger(int port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ =
        ::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Stranger() { ::close(descriptor_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  bool is_connected() const { return is_connected_; }
  void say(const std::string& bytes) const {
    (void)!::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

 private:
  int descriptor_;
  bool is_connected_ = false;
};

class Strangers : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(Start::Hand); !why.empty()) GTEST_SKIP() << why;
    job.train(Start::Hand, {"--global-batch-size", "2"});
    ASSERT_TRUE(job.await_training());
  }
  // The job has gone on and ends well.
  void expect_good_end() {
    const size_t steps = count(job.out(), " iteration ");
    pause(0.3);
    EXPECT_GT(count(job.out(), " iteration "), steps) << job.err();
    job.signal(0, SIGTERM);
    ASSERT_TRUE(job.await_end(20)) << job.err();
    for (const Child& child : job.children()) EXPECT_EQ(child.code, 0) << job.err();
  }
  Job job{2};
};

TEST_F(Strangers, WithAnyBytesAreRefused) {
  std::string noise(5000, '\0');
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * 31 + i / 7);
  for (const std::string& bytes :
       {noise, std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n") + noise, std::string(64, '\xff')}) {
    const Stranger one(job.port());
    ASSERT_TRUE(one.is_connected());
    one.say(bytes);
    pause(0.1);
  }
  ASSERT_TRUE(job.await_err("refused a connection from 127.0.0.1"));
  expect_good_end();
}

TEST_F(Strangers, ThatComeAndGoOrSayNothingAreManyAndHarmless) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Stranger(job.port()).is_connected());
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(std::make_unique<Stranger>(job.port()));
    ASSERT_TRUE(silent.back()->is_connected());
  }
  ASSERT_TRUE(job.await_err("refused a connection from 127.0.0.1"));
  // Most of them only as a number.
  ASSERT_TRUE(job.await_err(" more connection")) << job.err();
  expect_good_end();
  EXPECT_LT(count(job.err(), "refused a connection from "), 10) << job.err();
}

TEST_F(Strangers, WithAnotherSecretAreRefused) {
  Job other(2);
  other.set_port(job.port());
  other.secret = "another secret, as long as the first";
  other.train_rank(1, {});
  ASSERT_TRUE(other.await_end(20)) << other.err();
  EXPECT_EQ(other.children()[0].code, 5) << other.err();
  EXPECT_NE(other.err().find("secret"), std::string::npos) << other.err();
  ASSERT_TRUE(job.await_err("refused a connection from 127.0.0.1"));
  expect_good_end();
}

TEST_F(Strangers, WhoAreAnotherJobFindThePortTaken) {
  Job other(2);
  other.set_port(job.port());
  other.train(Start::Hand, {"--parallel.timeout_minutes", "0.1"});
  ASSERT_TRUE(other.await_end(20)) << other.err();
  EXPECT_EQ(other.children()[0].code, 5) << other.err();
  EXPECT_EQ(other.children()[1].code, 5) << other.err();
  const std::string owner = std::to_string(job.process_of(0));
  EXPECT_NE(other.err().find("cannot listen at 127.0.0.1:" + std::to_string(job.port())),
            std::string::npos)
      << other.err();
  EXPECT_NE(other.err().find(owner), std::string::npos) << other.err();
  EXPECT_NE(other.err().find("this job is complete"), std::string::npos) << other.err();
  expect_good_end();
}

}  // namespace
}  // namespace bev::test
