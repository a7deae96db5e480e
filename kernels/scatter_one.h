//! chunk scatter_one
//! template T=s8,u8,s16,u16,s32,u32,s64,u64,f32,f64
/* What becomes of an element `a` that `b` is scattered to: b, or by `reduction` their sum (1), product (2),
 * the larger (3) or smaller one (4). Integers wrap; a NaN in `a` stays. */
static $T qk_scatter_one_$t($T a, $T b, int32_t reduction) {
    //! if T=f32,f64
    return reduction == 1 ? a + b : reduction == 2 ? a * b : reduction == 3 ? (a > b || a != a ? a : b)
           : reduction == 4 ? (a < b || a != a ? a : b) : b;
    //! else
    return reduction == 1 ? ($T)((uint64_t)a + (uint64_t)b)
           : reduction == 2 ? ($T)((uint64_t)a * (uint64_t)b)
           : reduction == 3 ? (a > b ? a : b) : reduction == 4 ? (a < b ? a : b) : b;
    //! end
}
