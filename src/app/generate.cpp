// bevatron generate: let a trained model continue a prompt.
#include "app/verbs.h"
#include "base/check.h"

namespace bev::app {

int generate(std::span<const std::string>) {
  throw Error(ErrorKind::Internal, "generate is being rewritten");
}

}  // namespace bev::app
