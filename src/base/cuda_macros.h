// Marks a function that GPU code calls too. Nothing where no CUDA compiler reads it.
#pragma once

#ifdef __CUDACC__
#define BEV_HOST_DEVICE __host__ __device__
#else
#define BEV_HOST_DEVICE
#endif
