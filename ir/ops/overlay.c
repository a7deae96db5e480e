/* See overlay.h. A lead is the maximum, over all moments, of the bytes written by then less the
 * bytes before the first that is still to be read. */
#include "ir/ops/overlay.h"

static int64_t max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int64_t lead_steps(int64_t steps, int64_t read, int64_t written) {
    if (steps <= 1) /* nothing is read after the first result */
        return -read;
    return max(written - read, (steps - 1) * (written - read));
}

void bind_over_each(Binder *b, int arg, int64_t n, ElemType x, ElemType y) {
    if (elem_bits(x) == elem_bits(y))
        bind_in_place(b, arg);
    else
        bind_over(b, arg, lead_steps(n, elem_bits(x) / 8, elem_bits(y) / 8));
}

/* ---- windows ---- */

typedef struct Bytes {
    int64_t read, written;    /* of one position: all channels */
    int64_t in_image, in_row; /* of the operand */
    int64_t out_image;        /* of the result */
} Bytes;

static Bytes bytes_of(const Spatial *s, ElemType x, ElemType y) {
    Bytes b = {.read = (int64_t)s->ic * (elem_bits(x) / 8),
               .written = (int64_t)s->oc * (elem_bits(y) / 8)};
    b.in_row = s->iw * b.read;
    b.in_image = s->ih * b.in_row;
    b.out_image = (int64_t)s->oh * s->ow * b.written;
    return b;
}

/* The first byte that the windows at (oy, ox) and after it read of their image. Below the top
 * border windows begin with row 0, whatever their dilation. */
static int64_t first_read(const Spatial *s, const Bytes *b, int64_t oy, int64_t ox) {
    int64_t top = oy * s->sh - s->pt, left = max(0, ox * s->sw - s->pl);
    int64_t here = max(0, top) * b->in_row + min(left * b->read, b->in_row);
    int64_t next = max(0, top + s->sh) * b->in_row;
    return min(min(here, next), b->in_image);
}

/* With several images all of it happens again, each time further on by what an image is smaller. */
static int64_t of_images(const Spatial *s, const Bytes *b, int64_t lead) {
    int64_t drift = b->out_image - b->in_image;
    if (s->n <= 1)
        return max(lead, -b->in_image * s->n);
    return max(max(lead, lead + (s->n - 1) * drift), max(drift, (s->n - 1) * drift));
}

/* Within a row both sides grow evenly but where windows leave the border at the left, so the
 * largest difference is at one of the ends of these parts. */
int64_t lead_window(const Spatial *s, ElemType x, ElemType y, int32_t ahead) {
    Bytes b = bytes_of(s, x, y);
    int64_t lead = -b.in_image, all = (int64_t)s->oh * s->ow, free = s->pl / s->sw;
    for (int64_t oy = 0; oy < s->oh; oy++) {
        int64_t from[] = {0, 1, free, free + 1, s->ow - 1, all - ahead - oy * s->ow};
        for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
            int64_t ox = from[i], done = min(oy * s->ow + ox + ahead, all);
            if (ox >= 0 && ox < s->ow && done > 0)
                lead = max(lead, done * b.written - first_read(s, &b, oy, ox));
        }
    }
    return of_images(s, &b, lead);
}

int64_t lead_planes(const Spatial *s, ElemType x, ElemType y, int32_t ahead) {
    Spatial plane = *s;
    plane.n = s->n * s->ic;
    plane.ic = plane.oc = 1;
    return lead_window(&plane, x, y, ahead);
}

int64_t lead_kept_rows(const Spatial *s, ElemType x, ElemType y) {
    Bytes b = bytes_of(s, x, y);
    int64_t lead = -b.in_image;
    for (int64_t oy = 0; oy + 1 < s->oh; oy++) {
        int64_t top = oy * s->sh - s->pt, next = max(0, max(top + s->kh, top + s->sh));
        if (next < s->ih)
            lead = max(lead, (oy + 1) * s->ow * b.written - next * b.in_row);
    }
    return of_images(s, &b, lead);
}
