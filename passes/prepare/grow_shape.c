/* See passes/prepare/grow_shape.h. */
#include "passes/prepare/grow_shape.h"

enum { MOST_ELEMENTS = 1 << 30 };

typedef struct Shapes { /* of a Reshape: operand and result, at the old size and at the trial's */
    int n, m;
    int64_t x0[MAX_RANK], x1[MAX_RANK], y0[MAX_RANK], y1[MAX_RANK];
} Shapes;

/* False also where products of dimensions, times a size on trial, might not fit 64 bits. */
static bool numbers(Type t, int64_t *dims, int *rank) {
    if (t.kind != TYPE_TENSOR || t.rank < 0 || t.rank > MAX_RANK || !type_is_static(t))
        return false;
    *rank = t.rank;
    int64_t room = MOST_ELEMENTS;
    for (int i = 0; i < t.rank; i++) {
        dims[i] = t.dims[i].value;
        if (dims[i] > room)
            return false;
        room /= dims[i] ? dims[i] : 1;
    }
    return true;
}

/* The size that a dimension which grew from x0 to x1 is a multiple of; 0: it is none of those. */
static int64_t unit(const Sizes *t, int64_t x0, int64_t x1) {
    for (size_t i = 0; i < t->n; i++)
        if (t->old[i] > 0 && x0 * t->trial[i] == x1 * t->old[i])
            return t->old[i];
    return 0;
}

/* Dimensions a..b of the operand hold what c..e of the result do. Where they grow: one goes to one,
 * several are merged, or the leading one of several is the size itself. A size of 1 says nothing of
 * where it went, so that it is merged only where the model says -1. */
static bool grow_group(const Sizes *t, Shapes *s, const int64_t *shape, int a, int b, int c,
                       int e) {
    int64_t p0 = 1, p1 = 1;
    for (int i = a; i < b; i++) {
        p0 *= s->x0[i];
        p1 *= s->x1[i];
    }
    memcpy(s->y1 + c, s->y0 + c, (size_t)(e - c) * sizeof *s->y1);
    if (p0 == p1)
        return true;
    int64_t size = unit(t, p0, p1);
    if (!size)
        return false;
    if (e - c == 1) {
        s->y1[c] = p1;
        return b - a == 1 || size > 1 || shape[c] == -1;
    }
    if (b - a != 1 || s->y0[c] != size || s->x0[a] == size)
        return false;
    for (int i = c + 1; i < e; i++)
        if (s->y0[i] == size)
            return false; /* which of them is it? */
    s->y1[c] = size * p1 / p0;
    return true;
}

/* Both shapes in the shortest groups of equal products. */
static bool grow(const Sizes *t, Shapes *s, const int64_t *shape) {
    int i = 0, j = 0;
    while (i < s->n || j < s->m) {
        int a = i, c = j;
        int64_t p = i < s->n ? s->x0[i++] : 1, q = j < s->m ? s->y0[j++] : 1;
        while (p != q) {
            if (p < q && i < s->n)
                p *= s->x0[i++];
            else if (q < p && j < s->m)
                q *= s->y0[j++];
            else
                return false;
        }
        if (p == 0 || !grow_group(t, s, shape, a, i, c, j))
            return false;
    }
    return true;
}

/* The shape to state, so that it holds for every size: 0 where a dimension is the operand's, -1 for
 * one more; false where that does not do. What need not change stays. */
static bool state(const Shapes *s, bool allowzero, int64_t *shape) {
    int missing = -1;
    for (int k = 0; k < s->m; k++) {
        bool same = k < s->n && s->x0[k] == s->y0[k] && s->x1[k] == s->y1[k];
        if (s->y1[k] == s->y0[k] || (shape[k] == 0 && !allowzero && same))
            continue;
        if (same && !allowzero && shape[k] != -1) {
            shape[k] = 0;
            continue;
        }
        if (missing >= 0)
            return false;
        missing = k;
    }
    for (int k = 0; k < s->m && missing >= 0; k++)
        shape[k] = k == missing ? -1 : shape[k] == -1 ? s->y0[k] : shape[k];
    return true;
}

ShapeGrowth grow_shape(const Sizes *t, Type x0, Type x1, Type y0, bool allowzero, int64_t *shape) {
    Shapes s;
    if (!numbers(x0, s.x0, &s.n) || !numbers(x1, s.x1, &s.n) || !numbers(y0, s.y0, &s.m) ||
        memcmp(s.x0, s.x1, (size_t)s.n * sizeof *s.x0) == 0)
        return GROWS_NOT;
    return grow(t, &s, shape) && state(&s, allowzero, shape) ? GROWS : GROWS_UNSURE;
}
