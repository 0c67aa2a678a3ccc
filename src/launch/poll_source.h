// What a launcher looks after beside its ranks and its signals.
#pragma once

#include <string>

namespace bev {

class SideWork {
 public:
  virtual ~SideWork() = default;

  // Can be read when there is something to look at.
  virtual int descriptor() const = 0;
  // Milliseconds after which it wants to be looked at even so.
  virtual int patience() const = 0;
  // Does what there is to do, without waiting.
  virtual void look() = 0;
  // Why the ranks of this machine must end; empty: they need not.
  virtual std::string end_wanted() const = 0;
};

}  // namespace bev
