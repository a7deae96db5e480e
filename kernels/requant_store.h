//! chunk requant_store
//! template Y=s8,u8
//! uses simd
/* The first n results of a vector of 16. */
#if defined(__SSE2__) && !defined(QXC_INTEGER_ONLY)
static void qk_requant_store_$y(const $Y *from, int32_t n, $Y *y) {
    if (n >= 16)
        memcpy(y, from, 16);
    else if (n == 8)
        memcpy(y, from, 8);
    else
        memcpy(y, from, (size_t)n);
}
#endif
