/* See passes/quantize/mac_data.h. */
#include "passes/quantize/mac_data.h"
#include "passes/quantize/mac_rows.h"
#include "passes/quantize/observe.h"

enum {
    POSITIONS_PER_SAMPLE = 128,
    LARGEST_GRAM = 2048, /* terms; 32 MB */
    BYTES_A_RUN = 256 << 20,
};

typedef struct Watched {
    Node *node;
    MacRows rows;
    Value **mended; /* [n_in]: the operands that the node has after the last run; NULL: its own */
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

static void observe(void *ctx, const Value *v, const void *data) {
    Collect *c = ctx;
    for (Watched *w = c->by_value[v->id]; w; w = c->next[w - c->nodes])
        mac_rows_add(&w->rows, data, NULL, POSITIONS_PER_SAMPLE);
}

/* ---- which nodes ---- */

static void find_nodes(Graph *g, void *ctx) {
    Collect *c = ctx;
    FOR_NODES(n, g) {
        Watched w = {.node = n};
        if (mac_rows_of(n, c->c->d, &w.rows))
            ARENA_PUSH(c->arena, c->nodes, c->n, c->cap, w);
    }
}

/* Whether somebody asks for one, and it would not be too large. */
static bool has_gram(const Collect *c, const Watched *w) {
    size_t k = w->rows.data.terms;
    if (!c->gram || k > LARGEST_GRAM || !c->gram(c->ctx, w->node))
        return false;
    return w->rows.data.groups <= BYTES_A_RUN / (k * k * sizeof(double));
}

static size_t table_bytes(const Collect *c, const Watched *w) {
    return mac_rows_size(&w->rows, has_gram(c, w), false) * sizeof(double);
}

/* Zeroed memory of this run's tables, which those of the next take over. */
static void make_room(Collect *c, Watched *w) {
    bool gram = has_gram(c, w);
    mac_rows_begin(&w->rows, c->arena, c->pool + c->used, gram, false);
    c->used += mac_rows_size(&w->rows, gram, false);
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
    fn(c->ctx, n, &w->rows.data);
    w->mended = arena_copy(c->arena, n->in, n->n_in * sizeof *n->in);
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = i < n_in ? own[i] : NULL;
}

static void say_left_out(const Collect *c) {
    size_t sums = 0, nodes = 0;
    const Node *first = NULL;
    for (size_t i = 0; i < c->n; i++) {
        size_t left_out = c->nodes[i].rows.left_out;
        first = left_out && !first ? c->nodes[i].node : first;
        sums += left_out;
        nodes += left_out > 0;
    }
    mac_rows_say_left_out(c->c, c->pass, first, sums, nodes);
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
    Arena *a = arena_scratch(m->arena);
    Runner *r = observe_build(m, c, a);
    bool ok = r != NULL;
    Progress *progress = diags_progress(c->d);
    while (ok && all.end < all.n) {
        all.first = all.end;
        choose_nodes(&all);
        ok = observe_run(r, m, c, observe, &all);
        size_t level = progress_begin(progress, "layer", all.n);
        for (size_t i = all.first; ok && i < all.end; i++)
            if (all.nodes[i].rows.data.rows > 0) {
                progress_step(progress, level, i);
                mac_rows_finish(&all.nodes[i].rows);
                mend(&all, &all.nodes[i], fn);
            }
        progress_end(progress, level);
    }
    arena_free(a);
    say_left_out(&all);
    for (size_t i = 0; i < all.n; i++) {
        const Watched *w = &all.nodes[i];
        if (w->mended)
            memcpy(w->node->in, w->mended, w->node->n_in * sizeof *w->mended);
    }
    shapes_restore(m, shapes);
    return ok;
}
