//! chunk simd
/* Micro-kernels of some processors stand beside the portable ones and give the same bits. At most
 * one of these names is defined: what multiplies and adds. */
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__GNUC__)
#define QK_VNNI
#elif defined(__AVX2__)
#define QK_AVX2
#elif defined(__SSE2__)
#define QK_SSE2
#endif
