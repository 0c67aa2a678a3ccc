// The headers that most tests include, compiled once.
#include <gtest/gtest.h>

#include "../cmake/precompiled.h"
