#include "coordination/coordination_server.h"

#include <exception>

#include "base/format.h"
#include "coordination/server_loop.h"

namespace bev {

ControlServer::ControlServer(Socket listener, ControlServerOptions options) {
  const auto note = options.note;
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

ControlServer::~ControlServer() {
  loop_->stop();
  thread_.join();
}

std::vector<RankTimes> ControlServer::times() const { return loop_->times(); }

}  // namespace bev
