/* See program/bands.h. */
#include "program/bands.h"

#include "kernels_gen.h"
#include "program/windows.h"

/* ---- who does what in which band ---- */

/* A call of a chain, and its rows. */
typedef struct Layer {
    const Call *call;
    int32_t ih, oh;
    size_t in_row, out_row; /* bytes */
} Layer;

/* What it does in one band. */
typedef struct Turn {
    Rows in, out; /* reads and makes; out none: nothing is left to do */
    Rows held;    /* of its result in the buffer while the next call reads */
    int32_t kept; /* the first of these were there before */
    int32_t down; /* and move down by so many rows; 0: they lie right */
} Turn;

typedef struct Chain {
    Layer *layers;
    size_t n;
    int32_t images, rows; /* rows of a band */
    int32_t *most;        /* by layer: rows of its result held at a time */
    Turn *turns;          /* of the bands in order, by layer */
    size_t n_bands, moved;
    bool uneven; /* a buffer is no whole number of rows, or has other rows for the next call */
} Chain;

static size_t row_bytes(Chain *k, const Program *p, int root, int32_t rows) {
    size_t all = rows > 0 ? (size_t)rows * (size_t)k->images : 0, bytes = p->buffers[root].bytes;
    k->uneven |= !all || bytes % all;
    return all ? bytes / all : 0;
}

/* What maps elements alone has as many rows as what it reads. */
static Chain chain_of(Arena *a, const Program *p, const Banding *b) {
    const Call *calls = &p->calls[b->first];
    Chain k = {.layers = NEW_ARRAY(a, Layer, b->n), .n = b->n, .rows = b->rows};
    k.most = NEW_ARRAY(a, int32_t, b->n);
    k.images = call_get(&calls[0], "n", 1);
    k.uneven = k.images < 1;
    int32_t height = 0;
    for (size_t i = 0; i < b->n; i++) {
        Layer *l = &k.layers[i];
        bool windows = bands_windows(&calls[i]);
        *l = (Layer){.call = &calls[i], .ih = windows ? call_get(&calls[i], "ih", 0) : height};
        k.uneven |= i && l->ih != height;
        k.uneven |= windows && call_get(&calls[i], "n", 1) != k.images;
        height = l->oh = windows ? call_get(&calls[i], "oh", 0) : height;
        l->in_row = row_bytes(&k, p, bands_operand(p, l->call), l->ih);
        l->out_row = row_bytes(&k, p, bands_result(p, l->call), l->oh);
    }
    return k;
}

int32_t bands_height(const Program *p, const Banding *b) {
    int32_t height = 0;
    for (size_t i = 0; i < b->n; i++)
        if (bands_windows(&p->calls[b->first + i]))
            height = call_get(&p->calls[b->first + i], "oh", 0);
    return height;
}

static bool none(Rows r) {
    return r.from >= r.to;
}

/* Rows of the result that the next call wants while `before` are there; none: it wants nothing. */
static void hand_on(Turn *t, Rows before, Rows wanted) {
    t->held = before;
    if (none(wanted))
        return;
    t->held = (Rows){wanted.from, before.to > wanted.to ? before.to : wanted.to};
    if (before.to > wanted.from) {
        t->kept = before.to - wanted.from;
        t->down = wanted.from - before.from;
    }
    t->out = (Rows){wanted.from + t->kept, wanted.to};
}

static bool reach(const Layer *l, Rows out, Rows *in) {
    *in = out;
    return !bands_windows(l->call) || windows_reach(l->call, out, in);
}

/* One band, from behind. `before` is what it begins with, NULL: nothing. */
static bool turn(Chain *k, Turn *turns, const Turn *before, Rows last) {
    Rows wanted = last;
    for (size_t i = k->n; i-- > 0;) {
        Turn *t = &turns[i];
        *t = (Turn){.out = wanted};
        if (i + 1 < k->n) {
            hand_on(t, before ? before[i].held : (Rows){0, 0}, wanted);
            int32_t rows = t->held.to - t->held.from;
            k->most[i] = rows > k->most[i] ? rows : k->most[i];
            k->moved += t->down ? (size_t)t->kept * k->layers[i].out_row : 0;
        }
        wanted = (Rows){0, 0};
        if (!none(t->out) && !reach(&k->layers[i], t->out, &t->in))
            return false;
        wanted = none(t->out) ? wanted : t->in;
    }
    return true;
}

static bool take_turns(Arena *a, Chain *k) {
    if (k->uneven)
        return false;
    int32_t height = k->layers[k->n - 1].oh, each = (height + k->rows - 1) / k->rows;
    k->n_bands = (size_t)k->images * (size_t)each;
    k->turns = NEW_ARRAY(a, Turn, k->n_bands * k->n);
    for (size_t b = 0; b < k->n_bands; b++) {
        int32_t in_image = (int32_t)(b % (size_t)each), from = in_image * k->rows;
        Turn *turns = &k->turns[b * k->n];
        Rows last = {from, height - from < k->rows ? height : from + k->rows};
        if (!turn(k, turns, in_image ? turns - k->n : NULL, last))
            return false;
    }
    return true;
}

/* ---- measures ---- */

static size_t aligned(size_t bytes) {
    return (bytes + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
}

static size_t between(const Chain *k) {
    size_t bytes = 0;
    for (size_t i = 0; i + 1 < k->n; i++)
        bytes += aligned((size_t)k->most[i] * k->layers[i].out_row);
    return bytes;
}

/* Where rows of a port of the chain begin, in its buffer. */
static size_t place(const Chain *k, size_t band, int32_t height, int32_t row, size_t bytes) {
    size_t image = band / (k->n_bands / (size_t)k->images);
    return (image * (size_t)height + (size_t)row) * bytes;
}

/* What a band has made may not lie where a later one reads. */
static int64_t lead_of(const Chain *k) {
    const Layer *first = &k->layers[0], *last = &k->layers[k->n - 1];
    int64_t made = 0, lead = -(int64_t)((size_t)k->images * (size_t)first->ih * first->in_row);
    for (size_t b = 0; b < k->n_bands; b++) {
        const Turn *t = &k->turns[b * k->n], *end = &t[k->n - 1];
        if (b && !none(t->out)) {
            int64_t read = (int64_t)place(k, b, first->ih, t->in.from, first->in_row);
            lead = made - read > lead ? made - read : lead;
        }
        made = (int64_t)place(k, b, last->oh, end->out.to, last->out_row);
    }
    return lead;
}

bool bands_measure(const Program *p, const Banding *b, BandSizes *sizes) {
    Arena *a = arena_new(0, arena_handler(p->module->arena));
    Chain k = chain_of(a, p, b);
    bool can = take_turns(a, &k);
    if (can)
        *sizes = (BandSizes){.n_bands = k.n_bands, .between = between(&k), .lead = lead_of(&k)};
    arena_free(a);
    return can;
}

/* ---- the calls ---- */

static const void *params_of(Arena *a, const Layer *l, const Turn *t) {
    const Call *c = l->call;
    void *params = arena_copy(a, c->params, c->kernel->params_size);
    if (bands_windows(c)) {
        windows_take(c, params, t->out, t->in);
        if (call_field(c, params, "n"))
            *call_field(c, params, "n") = 1;
    } else {
        size_t bytes = (size_t)(t->out.to - t->out.from) * l->in_row;
        *(int64_t *)kernel_param(c->kernel, params, "n") =
            (int64_t)(bytes / c->kernel->args[0].size);
    }
    return params;
}

/* The parts of one call; `held` is where those of the call before it lie. */
static const CallPart *parts_of(Arena *a, const Program *p, const Chain *k, size_t i) {
    const Layer *l = &k->layers[i];
    CallPart *parts = NEW_ARRAY(a, CallPart, k->n_bands);
    for (size_t b = 0; b < k->n_bands; b++) {
        const Turn *t = &k->turns[b * k->n + i];
        int out = call_output(p, l->call);
        parts[b].at = NEW_ARRAY(a, size_t, (size_t)l->call->n_args);
        if (none(t->out))
            continue;
        parts[b].params = params_of(a, l, t);
        parts[b].at[0] = i ? (size_t)(t->in.from - t[-1].held.from) * l->in_row
                           : place(k, b, l->ih, t->in.from, l->in_row);
        parts[b].at[out] = i + 1 < k->n ? (size_t)t->kept * l->out_row
                                        : place(k, b, l->oh, t->out.from, l->out_row);
    }
    return parts;
}

/* What moves the rows of a result that two bands share. False where none does. */
static bool slide_of(Arena *a, const Program *p, const Chain *k, size_t i, Call *slide) {
    const Call *c = k->layers[i].call;
    size_t row = k->layers[i].out_row;
    CallPart *parts = NEW_ARRAY(a, CallPart, k->n_bands);
    qk_slide_params any = {0};
    bool moves = false;
    for (size_t b = 0; b < k->n_bands; b++) {
        const Turn *t = &k->turns[b * k->n + i];
        qk_slide_params params = {.by = (int64_t)t->down * (int64_t)row,
                                  .n = (int64_t)t->kept * (int64_t)row};
        parts[b].at = NEW_ARRAY(a, size_t, 1);
        if (!t->down || !t->kept)
            continue;
        parts[b].params = arena_copy(a, &params, sizeof params);
        any = params;
        moves = true;
    }
    int buffer = bands_result(p, c);
    *slide = (Call){.kernel = kernel_find("qk_slide"),
                    .params = arena_copy(a, &any, sizeof any),
                    .n_args = 1,
                    .args = arena_copy(a, &buffer, sizeof buffer),
                    .parts = parts,
                    .n_parts = k->n_bands,
                    .node = c->node};
    return moves;
}

/* From here on it has room for a band, and holds no value. */
static void shrink(Program *p, int root, size_t bytes) {
    Buffer *b = &p->buffers[root];
    b->bytes = bytes;
    b->count = bytes / elem_bytes(b->elem, 1);
    for (size_t v = 0; v < p->module->n_values; v++)
        if (p->value_buffer[v] >= 0 && program_root(p, p->value_buffer[v]) == root)
            p->value_buffer[v] = -1;
}

/* Writes the calls of a chain to `to`; returns how many. */
static size_t put_chain(Arena *a, Program *p, const Banding *b, Call *to, size_t first) {
    Chain k = chain_of(a, p, b);
    take_turns(a, &k);
    Bands *bands = NEW(a, Bands);
    *bands =
        (Bands){.first = first, .n_bands = k.n_bands, .between = between(&k), .moved = k.moved};
    size_t n = 0;
    for (size_t i = 0; i < k.n; i++) {
        bool inner = i + 1 < k.n;
        n += inner && slide_of(a, p, &k, i, &to[n]);
        to[n] = *k.layers[i].call;
        to[n].parts = parts_of(a, p, &k, i);
        to[n].n_parts = k.n_bands;
        to[n].n_overlays = i == 0;
        to[n++].overlays[0] = (Overlay){.arg = 0, .lead = lead_of(&k)};
        bands->whole += inner ? aligned(p->buffers[bands_result(p, k.layers[i].call)].bytes) : 0;
    }
    bands->n = n;
    for (size_t i = 0; i < n; i++)
        to[i].bands = bands;
    for (size_t i = 0; i + 1 < k.n; i++)
        shrink(p, bands_result(p, k.layers[i].call), (size_t)k.most[i] * k.layers[i].out_row);
    return n;
}

void bands_make(Arena *a, Program *p, const Banding *all, size_t n) {
    size_t cap = p->n_calls, made = 0, next = 0;
    for (size_t i = 0; i < n; i++)
        cap += all[i].n; /* what moves rows */
    Call *calls = NEW_ARRAY(a, Call, cap);
    for (size_t i = 0; i < n; i++) {
        for (; next < all[i].first; next++)
            calls[made++] = p->calls[next];
        made += put_chain(a, p, &all[i], &calls[made], made);
        next += all[i].n;
    }
    for (; next < p->n_calls; next++)
        calls[made++] = p->calls[next];
    p->calls = calls;
    p->n_calls = made;
    p->cap_calls = cap;
}
