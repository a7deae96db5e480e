/* See passes/quantize/mac_data.h. */
#include "passes/quantize/mac_data.h"
#include "exec/kept.h"
#include "passes/edit.h"
#include "passes/quantize/observe.h"

#include <math.h>

enum {
    POSITIONS_PER_SAMPLE = 128,
    LARGEST_GRAM = 2048, /* terms; 32 MB */
    BYTES_A_RUN = 256 << 20,
    BATCH = 16, /* rows that the gram is told of at once: they stay in the processor's cache */
};

typedef struct Watched {
    Node *node;
    OpCtx op;
    MacSums sums;
    MacData data;
    float *rows;     /* [groups, terms]: one sum of each group */
    double *first;   /* with a gram: the first row of each group, which others are less */
    double *batch;   /* [groups, BATCH, terms] of such rows */
    size_t in_batch; /* of each group */
    size_t left_out; /* sums of each group over NaN or infinity */
    uint64_t looked; /* positions of those that are looked at in part */
    Value **mended;  /* [n_in]: the operands that the node has after the last run; NULL: its own */
} Watched;

typedef struct Collect {
    Arena *arena;
    PassContext *c;
    const char *pass;
    Module *m;
    MacGramFn *gram;
    void *ctx; /* of gram */
    Watched *nodes;
    size_t n, cap;
    size_t first, end; /* those of this run */
    double *pool;
    size_t pool_bytes, used; /* `used`: numbers */
    Watched **by_value;      /* by value id: the first node of this run that reads it as data */
    Watched **next;          /* by index in nodes: another one that does */
} Collect;

/* ---- one sum more ---- */

/* As `float ~ q` is rounded; parameters of activations are per tensor, others stay as they are. */
static void round_row(const Quant *q, float *row, size_t n) {
    if (!q || q->n_scale != 1)
        return;
    int64_t zp = quant_zp(q, 0), lo = quant_lo(q), hi = quant_hi(q);
    float scale = quant_scale(q, 0);
    if (elem_bits(q->storage) <= 16 && !quant_is_wide(q)) {
        row_round(row, n, scale, (float)(lo - zp), (float)(hi - zp));
        return;
    }
    for (size_t i = 0; i < n; i++)
        row[i] = (float)(quant_round(row[i], scale, zp, lo, hi) - zp) * scale;
}

/* The batch goes into the lower triangles, as the sum of x x^T. */
static void end_batch(Watched *w) {
    size_t k = w->data.terms;
    for (size_t g = 0; g < w->data.groups; g++)
        for (size_t i = 0; i < k; i++)
            for (size_t r = 0; r < w->in_batch; r++) {
                const double *x = w->batch + (g * BATCH + r) * k;
                if (x[i] != 0)
                    row_add_scaled(x, i + 1, x[i], w->data.gram + (g * k + i) * k);
            }
    w->in_batch = 0;
}

static void add_to_gram(Watched *w, size_t group) {
    size_t k = w->data.terms;
    const float *row = w->rows + group * k;
    double *first = w->first + group * k, *x = w->batch + (group * BATCH + w->in_batch) * k;
    for (size_t i = 0; w->data.rows == 1 && i < k; i++)
        first[i] = (double)row[i];
    for (size_t i = 0; i < k; i++)
        x[i] = (double)row[i] - first[i];
}

/* Sums up: divided by their number, they are means in the end. */
static void add_rows(Watched *w) {
    size_t n = w->data.groups * w->data.terms;
    w->data.rows += 1;
    row_add(w->rows, n, w->data.real);
    round_row(edit_tilde(w->node->in[0]), w->rows, n);
    row_add(w->rows, n, w->data.mean);
    for (size_t g = 0; w->data.gram && g < w->data.groups; g++)
        add_to_gram(w, g);
    if (w->data.gram && ++w->in_batch == BATCH)
        end_batch(w);
}

/* Of sums around the first row, those around the mean. */
static void finish(Watched *w) {
    size_t k = w->data.terms;
    for (size_t i = 0; i < w->data.groups * k; i++) {
        w->data.real[i] /= w->data.rows;
        w->data.mean[i] /= w->data.rows;
    }
    if (!w->data.gram)
        return;
    end_batch(w);
    for (size_t g = 0; g < w->data.groups; g++) {
        double *away = w->batch + g * BATCH * k;
        for (size_t i = 0; i < k; i++)
            away[i] = w->data.mean[g * k + i] - w->first[g * k + i];
        for (size_t i = 0; i < k; i++)
            row_add_scaled(away, i + 1, -w->data.rows * away[i], w->data.gram + (g * k + i) * k);
    }
}

/* Whether the sums of all groups at a position are numbers; they are w->rows then. */
static bool take_rows(Watched *w, const float *x, int64_t position) {
    w->node->def->quant.mac.terms(&w->op, &w->sums, x, position, w->rows);
    for (size_t i = 0; i < w->data.groups * w->data.terms; i++)
        if (!isfinite(w->rows[i]))
            return false;
    return true;
}

/* A sum over NaN or infinity says nothing: it is left out, as statistics leave such elements. */
static void add_sample(Watched *w, const float *x) {
    int64_t all = w->sums.positions, take = all < POSITIONS_PER_SAMPLE ? all : POSITIONS_PER_SAMPLE;
    for (int64_t i = 0; i < take; i++) {
        /* not at even distances: those meet the same columns of an image in every row */
        int64_t position = take < all ? (int64_t)spread_place(w->looked++, (size_t)all) : i;
        if (take_rows(w, x, position))
            add_rows(w);
        else
            w->left_out++;
    }
}

static void observe(void *ctx, const Value *v, const void *data) {
    Collect *c = ctx;
    for (Watched *w = c->by_value[v->id]; w; w = c->next[w - c->nodes])
        add_sample(w, data);
}

/* ---- which nodes ---- */

/* Not those whose shapes depend on data: they are behind what cannot run. */
static void find_nodes(Graph *g, void *ctx) {
    Collect *c = ctx;
    FOR_NODES(n, g) {
        if (!n->def || n->def->quant.kind != QUANT_MAC || !n->def->quant.mac.sums || !n->in[0] ||
            type_real_elem(n->in[0]->type) != ELEM_FLOAT || value_is_const(n->in[0]) ||
            !edit_float_const(n->in[n->def->quant.mac.weight]) || !type_is_static(n->in[0]->type))
            continue;
        Watched w = {.node = n, .op = op_ctx(n, c->c->d), .data = {.node = n}};
        if (!n->def->quant.mac.sums(&w.op, &w.sums) || w.sums.terms < 1 || w.sums.positions < 1)
            continue;
        w.data.groups = (size_t)w.sums.groups;
        w.data.terms = (size_t)w.sums.terms;
        ARENA_PUSH(c->arena, c->nodes, c->n, c->cap, w);
    }
}

/* 0: none, as nobody asks for it or it would be too large. */
static size_t gram_bytes(const Collect *c, const Watched *w) {
    size_t k = w->data.terms;
    if (!c->gram || k > LARGEST_GRAM || !c->gram(c->ctx, w->node))
        return 0;
    size_t square = k * k * sizeof(double);
    return w->data.groups > BYTES_A_RUN / square ? 0 : w->data.groups * square;
}

static size_t table_bytes(const Collect *c, const Watched *w) {
    size_t gram = gram_bytes(c, w), rows = 2 + (gram ? 1 + BATCH : 0);
    return gram + rows * w->data.groups * w->data.terms * sizeof(double);
}

/* Zeroed memory of this run's tables, which those of the next take over. */
static double *table(Collect *c, size_t numbers) {
    double *t = c->pool + c->used;
    c->used += numbers;
    return t;
}

static void make_room(Collect *c, Watched *w) {
    size_t k = w->data.terms;
    w->rows = NEW_ARRAY(c->arena, float, w->data.groups *k);
    w->data.real = table(c, w->data.groups * k);
    w->data.mean = table(c, w->data.groups * k);
    if (gram_bytes(c, w)) {
        w->data.gram = table(c, w->data.groups * k * k);
        w->first = table(c, w->data.groups * k);
        w->batch = table(c, w->data.groups * BATCH * k);
    }
}

static void clear_pool(Collect *c, size_t bytes) {
    c->used = 0;
    if (bytes > c->pool_bytes) {
        c->pool = arena_alloc(c->arena, bytes);
        c->pool_bytes = bytes;
    } else {
        memset(c->pool, 0, bytes);
    }
}

/* The next nodes whose tables fit together; at least one. */
static void choose_nodes(Collect *c) {
    size_t bytes = 0;
    for (c->end = c->first; c->end < c->n; c->end++) {
        size_t more = table_bytes(c, &c->nodes[c->end]);
        if (c->end > c->first && bytes + more > BYTES_A_RUN)
            break;
        bytes += more;
    }
    clear_pool(c, bytes);
    c->by_value = NEW_ARRAY(c->arena, Watched *, c->m->n_values);
    for (size_t i = c->first; i < c->end; i++) {
        Watched *w = &c->nodes[i];
        make_room(c, w);
        uint32_t id = w->node->in[0]->id;
        c->next[i] = c->by_value[id];
        c->by_value[id] = w;
    }
}

/* What `fn` gives the node is put aside until the last run, as all of them see the float model. */
static void mend(Collect *c, Watched *w, MacDataFn *fn) {
    Node *n = w->node;
    size_t n_in = n->n_in;
    Value **own = arena_copy(c->arena, n->in, n_in * sizeof *own);
    fn(c->ctx, n, &w->data);
    w->mended = arena_copy(c->arena, n->in, n->n_in * sizeof *n->in);
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = i < n_in ? own[i] : NULL;
}

static void say_left_out(const Collect *c) {
    size_t sums = 0, nodes = 0;
    const Watched *first = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const Watched *w = &c->nodes[i];
        first = w->left_out && !first ? w : first;
        sums += w->left_out;
        nodes += w->left_out > 0;
    }
    if (first)
        diag_warning(c->c->d, first->node->loc,
                     "%s leaves out %zu sum%s of %zu node%s over NaN or infinite elements of the "
                     "calibration run",
                     c->pass, sums, plural(sums), nodes, plural(nodes));
}

bool mac_data(Module *m, PassContext *c, const char *pass, MacGramFn *gram, MacDataFn *fn,
              void *ctx) {
    Collect all = {.arena = m->arena, .c = c, .pass = pass, .m = m, .gram = gram, .ctx = ctx};
    DataPaths data = pass_data(c);
    FixedShapes *shapes = shapes_fix(m, &data, c->d);
    if (!shapes)
        return false;
    module_each_graph(m, find_nodes, &all);
    all.next = NEW_ARRAY(m->arena, Watched *, all.n);
    Runner *r = observe_build(m, c);
    bool ok = r != NULL;
    Progress *progress = diags_progress(c->d);
    while (ok && all.end < all.n) {
        all.first = all.end;
        choose_nodes(&all);
        ok = observe_run(r, m, c, observe, &all);
        size_t level = progress_begin(progress, "layer", all.n);
        for (size_t i = all.first; ok && i < all.end; i++)
            if (all.nodes[i].data.rows > 0) {
                progress_step(progress, level, i);
                finish(&all.nodes[i]);
                mend(&all, &all.nodes[i], fn);
            }
        progress_end(progress, level);
    }
    say_left_out(&all);
    for (size_t i = 0; i < all.n; i++) {
        const Watched *w = &all.nodes[i];
        if (w->mended)
            memcpy(w->node->in, w->mended, w->node->n_in * sizeof *w->mended);
    }
    shapes_restore(m, shapes);
    return ok;
}
