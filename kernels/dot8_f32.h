//! chunk dot8_f32
/* a . b in eight partial sums, which compilers turn into vectors. */
static float qk_dot8_f32(const float *a, const float *b, int32_t len) {
    float s[8] = {0}, sum = 0.0f;
    int32_t k = 0, l;
    for (; k + 8 <= len; k += 8)
        for (l = 0; l < 8; l++)
            s[l] += a[k + l] * b[k + l];
    for (l = 0; l < 8; l++)
        sum += s[l];
    for (; k < len; k++)
        sum += a[k] * b[k];
    return sum;
}
