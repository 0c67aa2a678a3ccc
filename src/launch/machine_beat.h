// How launchers know that the others are still there.
#pragma once

#include <chrono>

namespace bev {

// So often each says something, and after such a silence it is gone: a cable may have been pulled,
// of which nobody is told.
inline constexpr std::chrono::seconds kMachineBeat{5}, kMachineSilence{60};

}  // namespace bev
