//! chunk gate
/* The functions that gates of recurrent operators go through, by number: 0 Sigmoid, 1 Tanh, 2 Relu.
 */
static float qk_gate(int32_t function, float x) {
    float e;
    if (function == 1)
        return tanhf(x);
    if (function == 2)
        return x < 0.0f ? 0.0f : x;
    e = expf(x < 0.0f ? x : -x);
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
/* x between -clip and clip, where there is one. */
static float qk_gate_clip(int32_t has_clip, float clip, float x) {
    if (!has_clip)
        return x;
    return x < -clip ? -clip : x > clip ? clip : x;
}
