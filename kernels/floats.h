//! chunk floats
/* As many float32 as the processor adds at once, from any address on; each number comes out as it
 * does without vectors. QK_FLOATS: there are vectors, and code whose loops are unrolled. */
#if defined(__GNUC__) && (defined(__SSE2__) || defined(__aarch64__))
#define QK_FLOATS
#if defined(__AVX512F__)
typedef float qk_floats __attribute__((vector_size(64)));
typedef float qk_floats_at __attribute__((vector_size(64), aligned(4), may_alias));
#elif defined(__AVX__)
typedef float qk_floats __attribute__((vector_size(32)));
typedef float qk_floats_at __attribute__((vector_size(32), aligned(4), may_alias));
#else
typedef float qk_floats __attribute__((vector_size(16)));
typedef float qk_floats_at __attribute__((vector_size(16), aligned(4), may_alias));
#endif
enum { QK_LANES = (int)(sizeof(qk_floats) / sizeof(float)) };

static inline qk_floats qk_load_floats(const float *x) {
    return *(const qk_floats_at *)(const void *)x;
}

static inline void qk_store_floats(float *y, qk_floats v) {
    *(qk_floats_at *)(void *)y = v;
}
#endif
