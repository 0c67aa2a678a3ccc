#include "launch/rendezvous_wait.h"

namespace bev {

RollCall::Verdict RollCall::judge(int present, double now) {
  const bool is_late = now - started_ >= limits_.join;
  if (present < limits_.least || present == refused_) {
    called_ = -1;
    return is_late ? Verdict::TooFew : Verdict::Wait;
  }
  if (present >= limits_.most) return Verdict::Go;
  if (called_ < 0) called_ = now;
  return now - called_ >= limits_.last_call ? Verdict::Go : Verdict::Wait;
}

}  // namespace bev
