// What a job that mpirun started needs of MPI before it has a control connection.
#pragma once

#include <cstddef>
#include <string>

namespace bev {

// This process as MPI numbers it.
struct MpiPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among those that share the memory of this machine
};

// What the MPI plug-in exports under kMpiBootstrapEntry: a function that returns this. The calls
// start MPI where it has not been started, and throw std::runtime_error with MPI's words.
struct MpiBootstrap {
  MpiPlace (*place)();
  // All ranks together: what the first one brings.
  std::string (*broadcast)(const std::string& from_first);
};
using GetMpiBootstrap = const MpiBootstrap* (*)();
inline constexpr const char* kMpiBootstrapEntry = "bevatron_mpi_bootstrap";

// A plug-in gives and takes no more than this in one broadcast.
inline constexpr size_t kMostBroadcast = size_t{64} << 10;

}  // namespace bev
