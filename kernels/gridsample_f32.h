//! kernel gridsample_f32
//! math
// ONNX GridSample: y[b, c, o] = x[b, c] at the place that grid[b, o] says, from -1 to 1 on each of `rank`
// axes, the last axis first: the nearest element (taps 1), between the 2 or 4 next to it linearly or by
// cubic convolution (Keys, a = -0.75). What lies outside is 0 (padding 0), the border (1) or mirrored
// there (2); with `corners` -1 and 1 are the middles of the outermost elements, else their edges.
typedef struct {
    int32_t batch, channels, rank, dim[8], places, taps, padding, corners;
} qk_gridsample_f32_params;

static float $NAME_mirrored(float v, float low, float high) {
    float span = high - low, away, rest;
    if (!(v < low || v > high))
        return v;
    if (span <= 0.0f)
        return low;
    away = v < low ? low - v : v - high;
    rest = fmodf(away, 2.0f * span); /* there and back again */
    rest = rest > span ? 2.0f * span - rest : rest;
    return v < low ? low + rest : high - rest;
}

static void $NAME_weights(float t, int32_t taps, float *w) {
    const float a = -0.75f;
    if (taps == 1) {
        w[0] = 1.0f;
    } else if (taps == 2) {
        w[0] = 1.0f - t;
        w[1] = t;
    } else {
        float u = 1.0f - t;
        w[0] = ((a * (t + 1.0f) - 5.0f * a) * (t + 1.0f) + 8.0f * a) * (t + 1.0f) - 4.0f * a;
        w[1] = ((a + 2.0f) * t - (a + 3.0f)) * t * t + 1.0f;
        w[2] = ((a + 2.0f) * u - (a + 3.0f)) * u * u + 1.0f;
        w[3] = ((a * (u + 1.0f) - 5.0f * a) * (u + 1.0f) + 8.0f * a) * (u + 1.0f) - 4.0f * a;
    }
}

/* The elements next to a place on an axis of length n, and what they count; those outside nothing. */
static void $NAME_axis(const qk_gridsample_f32_params *p, float g, int32_t n, int32_t *at, float *w) {
    float low = p->corners ? 0.0f : -0.5f, high = (float)n - 1.0f - low, first;
    float v = p->corners ? (g + 1.0f) / 2.0f * ((float)n - 1.0f) : ((g + 1.0f) * (float)n - 1.0f) / 2.0f;
    int32_t i;
    if (p->taps == 1) {
        float down = floorf(v), rest = v - down;
        v = down + (rest > 0.5f || (rest == 0.5f && 2.0f * floorf(down / 2.0f) != down) ? 1.0f : 0.0f);
    }
    if (p->padding == 1 && (v < low || v > high))
        v = v < 0.0f ? 0.0f : v > (float)n - 1.0f ? (float)n - 1.0f : v;
    v = p->padding == 2 ? $NAME_mirrored(v, low, high) : v;
    v = !(v > -1e6f) ? -1e6f : v > 1e9f ? 1e9f : v; /* far outside, or NaN */
    first = floorf(v);
    $NAME_weights(v - first, p->taps, w);
    for (i = 0; i < p->taps; i++) {
        int32_t k = (int32_t)first + i - (p->taps == 4);
        if (p->padding == 2 && (k < 0 || k >= n))
            k = (int32_t)$NAME_mirrored((float)k, low, high);
        if (p->padding == 0 && (k < 0 || k >= n))
            w[i] = 0.0f;
        at[i] = k < 0 ? 0 : k >= n ? n - 1 : k;
    }
}

static float $NAME_sum(const qk_gridsample_f32_params *p, const float *x, int32_t (*at)[4],
                       float (*w)[4]) {
    int32_t tap[8] = {0}, d;
    float sum = 0.0f;
    for (d = 0; d >= 0;) {
        ptrdiff_t place = 0;
        float weight = 1.0f;
        for (d = 0; d < p->rank; d++) {
            place = place * p->dim[d] + at[d][tap[d]];
            weight *= w[d][tap[d]];
        }
        sum += weight != 0.0f ? weight * x[place] : 0.0f;
        for (d = p->rank - 1; d >= 0 && ++tap[d] == p->taps; d--)
            tap[d] = 0;
    }
    return sum;
}

static void $NAME(const qk_gridsample_f32_params *p, const float *x, const float *grid, float *y) {
    int32_t at[8][4], b, c, o, d;
    float w[8][4];
    ptrdiff_t plane = 1;
    for (d = 0; d < p->rank; d++)
        plane *= p->dim[d];
    for (b = 0; b < p->batch && plane > 0; b++, y += (ptrdiff_t)p->channels * p->places)
        for (o = 0; o < p->places; o++, grid += p->rank) {
            for (d = 0; d < p->rank; d++)
                $NAME_axis(p, grid[p->rank - 1 - d], p->dim[d], at[d], w[d]);
            for (c = 0; c < p->channels; c++)
                y[(ptrdiff_t)c * p->places + o] =
                    $NAME_sum(p, x + ((ptrdiff_t)b * p->channels + c) * plane, at, w);
        }
}
