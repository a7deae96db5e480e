//! chunk cut32
static int64_t qk_cut32(int64_t v) { /* to what int32 holds */
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
}
