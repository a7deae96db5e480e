//! chunk depthwise_tile_rvv
//! template X=s8,u8
//! uses simd
/* depthwise_tile on the vectors of RISC-V, a lane for each channel, whose weights of two taps are the
 * halves of 16 bits. */
#if defined(QK_RVV)
static inline vint16m2_t qk_tap_$x(const $X *x, size_t n) {
    //! if X=s8
    return __riscv_vsext_vf2_i16m2(__riscv_vle8_v_i8m1(x, n), n);
    //! else
    return __riscv_vreinterpret_v_u16m2_i16m2(
        __riscv_vzext_vf2_u16m2(__riscv_vle8_v_u8m1(x, n), n));
    //! end
}

static void qk_depthwise_any_$x(const $X *const *tap, ptrdiff_t at, int32_t pairs, int32_t n,
                                const int8_t *w, ptrdiff_t channels, int32_t *acc) {
    size_t left = (size_t)n, vl;
    int32_t t;
    for (; left > 0; left -= vl, at += (ptrdiff_t)vl, w += 2 * vl, acc += vl) {
        const int8_t *from = w;
        vint32m4_t sum;
        vl = __riscv_vsetvl_e32m4(left);
        sum = __riscv_vmv_v_x_i32m4(0, vl);
        for (t = 0; t < 2 * pairs; t += 2, from += 2 * channels) {
            vint16m2_t v =
                __riscv_vreinterpret_v_i8m2_i16m2(__riscv_vle8_v_i8m2(from, 2 * vl));
            vint16m2_t first = __riscv_vsra_vx_i16m2(__riscv_vsll_vx_i16m2(v, 8, vl), 8, vl);
            vint16m2_t second = __riscv_vsra_vx_i16m2(v, 8, vl);
            sum = __riscv_vwmacc_vv_i32m4(sum, qk_tap_$x(tap[t] + at, vl), first, vl);
            sum = __riscv_vwmacc_vv_i32m4(sum, qk_tap_$x(tap[t + 1] + at, vl), second, vl);
        }
        __riscv_vse32_v_i32m4(acc, sum, vl);
    }
}
#endif
