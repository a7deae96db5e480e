//! chunk simd
/* Micro-kernels of some processors stand beside the portable ones and give the same bits. One
 * of these names is defined: what multiplies and adds. */
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__GNUC__)
#define QK_VNNI
#elif defined(__AVX2__)
#define QK_AVX2
#elif defined(__SSE2__)
#define QK_SSE2
#elif defined(__aarch64__) && defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#include <arm_neon.h>
#if defined(__ARM_FEATURE_DOTPROD)
#define QK_DOTPROD
#else
#define QK_NEON
#endif
#elif defined(__ARM_FEATURE_MVE) && !defined(__ARM_BIG_ENDIAN)
#include <arm_mve.h>
#define QK_MVE
#elif defined(__ARM_FEATURE_SIMD32) && !defined(__ARM_BIG_ENDIAN)
#include <arm_acle.h>
#define QK_DSP
#elif defined(__riscv_v_intrinsic) && __riscv_v_intrinsic >= 11000 && __riscv_v_min_vlen >= 128
#include <riscv_vector.h>
#define QK_RVV
#else
#define QK_PORTABLE
#endif
/* Whether vectors of float32 round tiles of sums. */
#if (defined(__SSE2__) || defined(QK_NEON) || defined(QK_DOTPROD)) && !defined(QXC_INTEGER_ONLY)
#define QK_FLOAT_TILE
#endif
/* Whether vectors of integers round them in fixed point. */
#if defined(__SSE2__) || defined(QK_NEON) || defined(QK_DOTPROD)
#define QK_FIXED_TILE
#endif
/* Sums that whole vectors write and read. */
#if defined(__AVX2__) && defined(__GNUC__)
#define QK_LINE __attribute__((aligned(64)))
#else
#define QK_LINE
#endif
