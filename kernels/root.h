//! chunk root
/* The integer part of the square root of v < 2^62. */
static uint64_t qk_root(uint64_t v) {
    uint64_t root = 0, bit = (uint64_t)1 << 60;
    for (; bit; bit >>= 2) {
        uint64_t least = root + bit;
        root >>= 1;
        if (v >= least) {
            v -= least;
            root += bit;
        }
    }
    return root;
}
