/* SHA-256 with the SHA extensions of x86 processors. Each instruction does two rounds on a state
 * that lies in two registers: a, b, e, f in one and c, d, g, h in the other, the first in the
 * highest lane. */
#include "support/sha256_blocks.h"

#if defined(__x86_64__)

#include <stdbool.h>

#include <cpuid.h>
#include <immintrin.h>

#define WITH_SHA __attribute__((target("sha,sse4.1")))

static bool has_sha(void) {
    unsigned a, b, c, d, features;
    return __get_cpuid(1, &a, &b, &features, &d) && (features & bit_SSSE3) &&
           (features & bit_SSE4_1) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/* The next four words of the schedule, of the sixteen before them, of which the oldest four stand
 * in `w[i]`. */
WITH_SHA static __m128i expand(const __m128i w[4], int i) {
    __m128i last = w[(i + 3) & 3];
    __m128i sum = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
    sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
    return _mm_sha256msg2_epu32(sum, last);
}

WITH_SHA static void compress_block(__m128i *abef, __m128i *cdgh, const uint8_t *block) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i x = *abef, y = *cdgh, w[4];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        if (i < 4)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)block + i), big_endian);
        else
            w[i & 3] = expand(w, i);
        __m128i k = _mm_loadu_si128((const __m128i *)sha256_constants + i);
        k = _mm_add_epi32(k, w[i & 3]);
        y = _mm_sha256rnds2_epu32(y, x, k);
        x = _mm_sha256rnds2_epu32(x, y, _mm_shuffle_epi32(k, 0x0E));
    }
    *abef = _mm_add_epi32(*abef, x);
    *cdgh = _mm_add_epi32(*cdgh, y);
}

WITH_SHA static void compress(uint32_t state[8], const uint8_t *p, size_t n) {
    __m128i *at = (__m128i *)(void *)state;
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(at), 0xB1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(at + 1), 0x1B);
    __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
    for (size_t i = 0; i < n; i++)
        compress_block(&abef, &cdgh, p + i * SHA256_BLOCK);
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128(at, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128(at + 1, _mm_alignr_epi8(dchg, feba, 8));
}

Sha256Blocks *sha256_blocks_x86(void) {
    return has_sha() ? compress : NULL;
}

#else

Sha256Blocks *sha256_blocks_x86(void) {
    return NULL;
}

#endif
