#include "device/cuda/cuda_library.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace bev::cuda {
namespace {

// Fails when a library that the loader finds is looked for in guessed folders only.
TEST(CudaLibrary, OpensTheFirstThatLoads) {
  std::string why;
  const CudaLibrary library = CudaLibrary::open({"libabsent.so.1", "libm.so.6"}, why);
  ASSERT_TRUE(library.loaded()) << why;
  EXPECT_EQ(library.path(), "libm.so.6");
  double (*cosine)(double) = nullptr;
  library.resolve(cosine, "cos");
  EXPECT_EQ(cosine(0), 1);
}

// Fails when a person cannot see from the message where the program has looked.
TEST(CudaLibrary, SaysWhatWasTried) {
  std::string why;
  const CudaLibrary library = CudaLibrary::open({"libabsent.so.1"}, why);
  EXPECT_FALSE(library.loaded());
  EXPECT_EQ(library.find("cos"), nullptr);
  EXPECT_NE(why.find("libabsent.so.1, "), std::string::npos) << why;
  EXPECT_NE(why.find("/usr/local/cuda/lib64/libabsent.so.1"), std::string::npos) << why;
  EXPECT_NE(why.find("cannot open shared object file"), std::string::npos) << why;
}

// Fails when a function that an older library lacks is called as null.
TEST(CudaLibrary, NamesTheMissingFunction) {
  std::string why;
  const CudaLibrary library = CudaLibrary::open({"libm.so.6"}, why);
  void (*function)() = nullptr;
  test::expect_error(ErrorKind::Device, "libm.so.6 has no no_such_function",
                     [&] { library.resolve(function, "no_such_function"); });
}

}  // namespace
}  // namespace bev::cuda
