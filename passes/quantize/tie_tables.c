/* Tied tables (-tie-tables). Gather looks rows up in a table, and a product has the same numbers as
 * weights: as the same constant (Gemm with transB), as another one, or turned, which is what
 * becomes of a Transpose between. Then rows are looked up in the weights, and the table goes:
 *
 *   y = Gather(table[V,D], ids)  ->  g = Gather(weights[D,V], ids) <axis=1>; y = Transpose(g)
 *
 * Only what was looked up is turned back. The weights are those of the product in all respects:
 * what reads them there, and how they are rounded, stays as it would be without the table. Their
 * type is decided by decide-weights. */
#include "passes/edit.h"
#include "passes/quantize/tied.h"
#include "support/parallel.h"

static const char PASS_NAME[] = "tie-tables";

typedef struct Product {
    const Node *n;
    Value *weights;
    int axis; /* of output channels: what rows of a table are here */
} Product;

typedef struct Tie {
    PassContext *c;
    Module *m;
    UniqueNames *names;
    Product *products;
    size_t n, cap;
} Tie;

static void find_products(Graph *g, void *ctx) {
    Tie *t = ctx;
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_in; i++) {
            Product p = {n, n->in[i], tied_axis(n, i, t->c->d)};
            if (p.axis >= 0 && !n->in[i]->type.quant)
                ARENA_PUSH(t->m->arena, t->products, t->n, t->cap, p);
        }
    }
}

/* ---- the same numbers ---- */

typedef struct Same {
    const RowFloat *x, *y;
    size_t rows, columns; /* of x */
    bool turned;          /* y is [columns, rows] */
    bool differs[PARALLEL_MOST];
} Same;

/* Rows of x. */
static void compare_rows(void *ctx, size_t from, size_t to, int worker) {
    Same *s = ctx;
    for (size_t i = from; i < to && !s->differs[worker]; i++)
        for (size_t k = 0; k < s->columns; k++)
            if (s->x[i * s->columns + k] !=
                s->y[s->turned ? k * s->rows + i : i * s->columns + k]) {
                s->differs[worker] = true;
                break;
            }
}

/* Whether the weights hold the table's numbers, rows along their axis of output channels. */
static bool same_numbers(const Value *table, const Product *p) {
    const Tensor *x = table->data, *y = p->weights->data;
    if (table == p->weights)
        return p->axis == 0;
    if (table->graph != p->weights->graph || x->dims[0] != y->dims[p->axis] ||
        x->dims[1] != y->dims[1 - p->axis] || !x->count)
        return false;
    Same s = {.x = tensor_floats(x),
              .y = tensor_floats(y),
              .rows = (size_t)x->dims[0],
              .columns = (size_t)x->dims[1],
              .turned = p->axis == 1};
    parallel_for(s.rows, 1 + PARALLEL_PART / s.columns, compare_rows, &s);
    return !memchr(s.differs, true, sizeof s.differs);
}

static const Product *product_of(const Tie *t, const Value *table) {
    for (size_t i = 0; i < t->n; i++)
        if (same_numbers(table, &t->products[i]))
            return &t->products[i];
    return NULL;
}

/* ---- the rows ---- */

/* The result of looking columns up, [D, ...], before it is turned. */
static Type columns_type(Arena *a, const Value *weights, Type ids) {
    Dim *dims = NEW_ARRAY(a, Dim, ids.rank + 1);
    dims[0] = weights->type.dims[0];
    for (int i = 0; i < ids.rank; i++)
        dims[i + 1] = ids.dims[i];
    return type_tensor(weights->type.elem, ids.rank + 1, dims);
}

static void look_up_columns(Tie *t, Node *n, Value *weights) {
    Type ids = n->in[1]->type;
    int64_t perm[MAX_RANK];
    node_set_int(n, "axis", 1);
    if (ids.rank > 0) {
        Node *back = node_new(n->graph, STR_NONE, STR("Transpose"), 1, 1);
        for (int i = 0; i < ids.rank; i++)
            perm[i] = i + 1;
        perm[ids.rank] = 0;
        node_set_ints(back, "perm", perm, (size_t)ids.rank + 1);
        node_from(back, n, PASS_NAME);
        Str name = arena_strf(t->m->arena, STR_FMT "_columns", STR_ARG(n->out[0]->name));
        node_follow(n, 0, back, unique_name(t->names, name),
                    columns_type(t->m->arena, weights, ids));
        op_resolve(back, t->c->d);
    }
    op_resolve(n, t->c->d);
}

static void tie(Tie *t, Node *n, const Product *p) {
    Value *table = n->in[0];
    const char *why = tied_refusal(t->c, n, table, p->n, p->weights);
    if (!why && p->axis == 1 && (n->in[1]->type.rank < 0 || n->in[1]->type.rank >= MAX_RANK))
        why = "how many dimensions its indices have is not known";
    if (why) {
        pass_remark(t->c, n,
                    "its table holds the weights of a product, and is not stored with them: %s",
                    why);
        return;
    }
    n->in[0] = p->weights;
    if (p->axis == 1)
        look_up_columns(t, n, p->weights);
    if (table != p->weights)
        module_release(t->m, table->data);
}

static void tie_graph(Graph *g, void *ctx) {
    Tie *t = ctx;
    FOR_NODES(n, g) {
        if (!n->n_in || !n->in[0] || n->in[0]->type.quant || !tied_looks_up(n, n->in[0], 0))
            continue;
        const Product *p = product_of(t, n->in[0]);
        if (p)
            tie(t, n, p);
    }
}

bool pass_tie_tables(Module *m, PassContext *c) {
    Tie t = {.c = c, .m = m, .names = unique_names_new(m)};
    module_each_graph(m, find_products, &t);
    module_each_graph(m, tie_graph, &t);
    edit_sweep(m);
    return true;
}
