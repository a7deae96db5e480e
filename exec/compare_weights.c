/* The constants of two models beside each other: what quantizing weights alone lost. */
#include "exec/compare.h"
#include "ir/ops/op.h"
#include "support/map.h"

enum { PIECE = 4096 }; /* elements at a time */

/* The real numbers that elements from `first` on stand for; those that `~` puts on a grid are
 * rounded to it, as when they run. */
static void reals(const Value *v, size_t first, size_t n, double *out) {
    const Tensor *t = v->data;
    const Quant *q = v->type.quant;
    bool known = q && q->kind == QUANT_PARAMS && q->grid == GRID_INTEGERS;
    bool rounds = known && elem_is_float(t->elem);
    int64_t lo = known ? quant_lo(q) : 0, hi = known ? quant_hi(q) : 0;
    for (size_t i = first; i < first + n; i++) {
        size_t k = q && q->n_scale > 1 ? quant_index(q, t->rank, t->dims, i) : 0;
        double x = tensor_float(t, i);
        if (rounds)
            x = (double)quant_round((float)x, quant_scale(q, k), quant_zp(q, k), lo, hi);
        bool stands_for = rounds || (q && type_is_quantized(v->type));
        out[i - first] = stands_for ? (x - (double)quant_zp(q, k)) * (double)quant_scale(q, k) : x;
    }
}

/* Numbers, not shapes or axes, of a size that is known. */
static bool is_weight(const Value *v) {
    return v && v->kind == VALUE_CONST && v->data && v->data->data && v->data->rank > 0 &&
           v->data->count > 0 && (elem_is_float(v->data->elem) || type_is_quantized(v->type));
}

static bool same_dims(const Tensor *x, const Tensor *y) {
    return x->rank == y->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

typedef struct Weights {
    Comparison *out;
    size_t cap;
    Arena *arena;
    bool *seen;  /* by id of the first model's value */
    Map *paired; /* values of the second model */
} Weights;

static void pair(Weights *w, const Value *x, const Value *y) {
    if (!is_weight(x) || !is_weight(y) || w->seen[x->id] || !same_dims(x->data, y->data))
        return;
    size_t n = x->data->count;
    double a[PIECE], b[PIECE];
    ErrorSums sums = {0};
    CompareRow row = {.name = x->name, .a = x, .b = y};
    for (size_t first = 0; first < n; first += PIECE) {
        size_t some = n - first < PIECE ? n - first : PIECE;
        reals(x, first, some, a);
        reals(y, first, some, b);
        error_add(&sums, a, b, some);
    }
    compare_finish(&row, &sums);
    w->seen[x->id] = true;
    map_set_at(w->paired, y, w);
    ARENA_PUSH(w->arena, w->out->rows, w->out->n, w->cap, row);
}

static const Value *first_result(const Node *n) {
    return n->n_out ? n->out[0] : NULL;
}

/* A quantized constant that is made of one of the first model's, and of what it was folded with. */
static bool is_folded(const Weights *w, const Map *of_a, const Value *v) {
    bool named = false, node = false;
    if (!is_weight(v) || !v->type.quant || elem_bits(v->type.quant->storage) > 16 ||
        map_get_at(w->paired, v))
        return false;
    for (size_t i = 0; i < v->from.n; i++) {
        const bool of_node = v->from.from[i].op.s;
        node = node || of_node;
        named = named || (!of_node && map_get(of_a, v->from.from[i].name));
    }
    return named && node;
}

static void count_folded(Weights *w, const Graph *a, const Graph *b) {
    Map *of_a = map_new(w->arena);
    FOR_NODES(n, a)
    for (size_t i = 0; i < n->n_in; i++)
        if (is_weight(n->in[i]))
            map_set(of_a, n->in[i]->name, n->in[i]);
    FOR_NODES(n, b)
    for (size_t i = 0; i < n->n_in; i++) {
        if (!is_folded(w, of_a, n->in[i]))
            continue;
        w->out->folded = w->out->n_folded++ ? w->out->folded : n->in[i];
        map_set_at(w->paired, n->in[i], w);
    }
}

/* Other tools rename what they quantize: a constant without a namesake is what the node of the same
 * result reads at the same place. */
void compare_weights(Module *a, Module *b, Comparison *out) {
    Weights w = {out, 0, a->arena, NEW_ARRAY(a->arena, bool, a->n_values), map_new(a->arena)};
    Map *consts = map_new(a->arena), *nodes = map_new(a->arena);
    *out = (Comparison){0};
    FOR_NODES(n, b->graph) {
        if (first_result(n))
            map_set(nodes, first_result(n)->name, n);
        for (size_t i = 0; i < n->n_in; i++)
            if (is_weight(n->in[i]))
                map_set(consts, n->in[i]->name, n->in[i]);
    }
    FOR_NODES(n, a->graph) {
        const Node *twin = first_result(n) ? map_get(nodes, first_result(n)->name) : NULL;
        for (size_t i = 0; i < n->n_in; i++) {
            if (!is_weight(n->in[i]))
                continue;
            pair(&w, n->in[i], map_get(consts, n->in[i]->name));
            if (twin && str_eq(twin->op, n->op) && i < twin->n_in)
                pair(&w, n->in[i], twin->in[i]);
        }
    }
    count_folded(&w, a->graph, b->graph);
}
