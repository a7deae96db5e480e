//! chunk requant_store
//! template Y=s8,u8
//! uses simd
/* The first n results of a vector of 16. The odd ones are written one by one: gcc 12, where
 * it knows n, makes up a call for 16 columns more and warns of a memcpy of -8 bytes. */
#if defined(__SSE2__) && !defined(QXC_INTEGER_ONLY)
static void qk_requant_store_$y(const $Y *from, int32_t n, $Y *y) {
    int32_t i;
    if (n >= 16)
        memcpy(y, from, 16);
    else if (n == 8)
        memcpy(y, from, 8);
    else
        for (i = 0; i < n; i++)
            y[i] = from[i];
}
#endif
