//! kernel embed
//! template T=f32,s8,u8
// y[row] = word[ids[row]] + position[at] + segment[segments[row]] on rows of `width`, where `at` is
// positions[row], positions[row % steps] where these are one row for all, or row % steps where they are not
// there. Integers stand for scale * (q - zp), of word, position and segment. Indices outside are taken as
// the nearest that is not (com.microsoft EmbedLayerNormalization). segments and segment may be absent.
typedef struct {
    int32_t rows, steps, width, words, places, kinds;
    int32_t shared; /* positions are one row */
    float scale[3];
    int32_t zp[3];
} qk_embed_params;

static const $T *$NAME_row(const $T *table, int32_t i, int32_t count, int32_t width) {
    i = i < 0 ? 0 : i >= count ? count - 1 : i;
    return table + (ptrdiff_t)i * width;
}

static void $NAME(const qk_embed_params *p, const int32_t *ids, const int32_t *segments,
                  const int32_t *positions, const $T *word, const $T *position, const $T *segment,
                  float *y) {
    int32_t r, i;
    for (r = 0; r < p->rows; r++, y += p->width) {
        int32_t step = r % p->steps, at = positions ? positions[p->shared ? step : r] : step;
        const $T *w = $NAME_row(word, ids[r], p->words, p->width);
        const $T *o = $NAME_row(position, at, p->places, p->width);
        const $T *s = segment ? $NAME_row(segment, segments[r], p->kinds, p->width) : NULL;
        for (i = 0; i < p->width; i++) {
//! if T=f32
            float v = w[i] + o[i];
            y[i] = s ? v + s[i] : v;
//! else
            float v = (float)(w[i] - p->zp[0]) * p->scale[0];
            v += (float)(o[i] - p->zp[1]) * p->scale[1];
            y[i] = s ? v + (float)(s[i] - p->zp[2]) * p->scale[2] : v;
//! end
        }
    }
}
