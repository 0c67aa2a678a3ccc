#include "coordination/coordination_server.h"

#include <exception>

#include "base/format.h"
#include "coordination/server_loop.h"

namespace bev {

CoordinationServer::CoordinationServer(Socket listener, CoordinationServerOptions options) {
  const auto note = options.log;
  loop_ = std::make_unique<Loop>(std::move(listener), std::move(options));
  thread_ = std::thread([this, note] {
    try {
      loop_->run();
    } catch (const std::exception& error) {
      note(format("the control server has failed: {}", error.what()));
      loop_->hang_up();
    }
  });
}

CoordinationServer::~CoordinationServer() {
  loop_->stop();
  thread_.join();
}

std::vector<RankTimes> CoordinationServer::times() const { return loop_->times(); }

}  // namespace bev
