//! chunk simd
/* Micro-kernels of some processors stand beside the portable ones and give the same bits. */
#if defined(__SSE2__)
#include <immintrin.h>
#endif
