// Ranks as processes. Starts them itself for Gloo; mpirun starts them for MPI.
//
//   ranks_test gloo 3                 three processes check every exchange
//   mpirun -n 3 ranks_test mpi        the same by MPI
//   ... measure 500                   how fast tensors of 500 MB are summed
//   ranks_test skipped "why"          for ctest, where a library is missing
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "comm/host_communicator.h"
#include "ranks/exchanges.h"
#include "ranks/job.h"
#include "ranks/measure.h"

namespace {

constexpr int kSkipped = 77;

int usage() {
  std::fprintf(stderr,
               "usage: ranks_test gloo PROCESSES [measure MEGABYTES]\n"
               "       mpirun -n PROCESSES ranks_test mpi [measure MEGABYTES]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view engine = argc > 1 ? argv[1] : "";
  if (engine == "skipped") {
    std::printf("skipped: %s\n", argc > 2 ? argv[2] : "");
    return kSkipped;
  }
  if (engine != "gloo" && engine != "mpi") return usage();
  const bool forks = engine == "gloo";
  const int next = forks ? 3 : 2;
  const int processes = forks && argc > 2 ? std::atoi(argv[2]) : 0;
  if (forks && (processes < 2 || processes > 64)) return usage();
  const bool measures = argc == next + 2 && std::string_view(argv[next]) == "measure";
  if (argc != next && !measures) return usage();
  const bev::test::Body body = [&](bev::test::Rank& self) {
    if (measures) return bev::test::measure(self, std::atoll(argv[next + 1]));
    bev::HostCommunicator world(*self.engine, *self.control);
    bev::test::check_exchanges(world);
    if (world.rank() == 0) {
      std::printf("%d processes exchange all there is by %s\n", world.size(),
                  self.engine->describe().c_str());
    }
  };
  try {
    return forks ? bev::test::run_forked(processes, bev::CommBackend::Gloo, body)
                 : bev::test::run_under_mpirun(bev::CommBackend::Mpi, body);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ranks_test: %s\n", e.what());
    return 1;
  }
}
