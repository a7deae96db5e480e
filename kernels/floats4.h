//! chunk floats4
//! uses floats
/* Four of them: what is left where there are fewer than a whole vector. */
#if defined(QK_FLOATS)
typedef float qk_floats4 __attribute__((vector_size(16)));
typedef float qk_floats4_at __attribute__((vector_size(16), aligned(4), may_alias));

static inline qk_floats4 qk_load_floats4(const float *x) {
    return *(const qk_floats4_at *)(const void *)x;
}

static inline void qk_store_floats4(float *y, qk_floats4 v) {
    *(qk_floats4_at *)(void *)y = v;
}
#endif
