// BEV_CHECK, the project's only macro besides include guards.
#pragma once

#include "base/error.h"
#include "base/format.h"

// Throws Error(kind, formatted message) when the condition is false; the message is built only
// then. A violated invariant of our own is ErrorKind::Internal.
#define BEV_CHECK(condition, kind, ...)                                       \
  do {                                                                        \
    if (!(condition)) [[unlikely]]                                            \
      throw ::bev::Error(::bev::ErrorKind::kind, ::fmt::format(__VA_ARGS__)); \
  } while (false)
