//! chunk dot_vnni
//! uses simd
#if defined(QK_VNNI)
/* sum + a * w in groups of four bytes, those of a unsigned: what _mm512_dpbusd_epi32 does. gcc moves
 * the sums of that to memory and back. */
static inline __m512i qk_dot4(__m512i sum, __m512i a, __m512i w) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
}
#endif
