/* If, Loop and Scan as the evaluator runs them: whole bodies, each time that they run. Tensors that
 * one iteration hands to the next may differ in shape. See exec/evaluator.h. */
#include "exec/evaluator.h"
#include "ir/ops/loop.h"

/* ---- tensors ---- */

static Tensor *number(Arena *a, ElemType e, int64_t v) {
    uint8_t *bytes;
    Tensor *t = tensor_new(a, e, 0, NULL, &bytes);
    elem_store_int(e, bytes, 0, v);
    return t;
}

/* Elements of `whole` along an axis are `part`s: moves the one at `at`, out of it or into it. */
static void move_part(uint8_t *whole, uint8_t *part, const Tensor *shape, int axis, int64_t at,
                      bool into) {
    size_t outer = 1, inner = (size_t)elem_bits(shape->elem) / 8;
    for (int i = 0; i < axis; i++)
        outer *= (size_t)shape->dims[i];
    inner *= dims_step(shape->rank, shape->dims, axis);
    size_t step = inner * (size_t)shape->dims[axis], first = inner * (size_t)at;
    for (size_t o = 0; inner && o < outer; o++) {
        uint8_t *w = whole + o * step + first, *p = part + o * inner;
        memcpy(into ? w : p, into ? p : w, inner);
    }
}

static Tensor *take_part(Arena *a, const Tensor *whole, int axis, int64_t at) {
    int64_t dims[MAX_RANK];
    uint8_t *bytes;
    for (int i = 0; i < whole->rank; i++)
        dims[i - (i > axis)] = whole->dims[i];
    Tensor *part = tensor_new(a, whole->elem, whole->rank - 1, dims, &bytes);
    move_part((uint8_t *)(uintptr_t)whole->data, bytes, whole, axis, at, false);
    return part;
}

/* ---- what is scanned ---- */

/* The values that a body yields for one result, iteration by iteration. */
typedef struct Parts {
    Tensor **items;
    size_t n, cap;
} Parts;

typedef struct Bodies {
    Evaluator *e;
    const Node *n;
    const Graph *body;
    size_t n_carried, in, out; /* the first carried one among the body's inputs and results */
    Parts *parts;              /* by result behind those that are carried */
    Diags *d;
} Bodies;

/* Without a part the dimensions are those that the body states, 0 where it does not. */
static Tensor *no_parts(Arena *a, Type part, int axis) {
    int64_t dims[MAX_RANK + 1] = {0};
    uint8_t *bytes;
    int rank = part.kind == TYPE_TENSOR && part.rank > 0 ? part.rank : 0;
    for (int i = 0; i < rank; i++)
        dims[i + (i >= axis)] = part.dims[i].value < 0 ? 0 : part.dims[i].value;
    dims[axis] = 0;
    return tensor_new(a, type_real_elem(part), rank + 1, dims, &bytes);
}

static bool same_parts(const Bodies *l, const Parts *p, const Value *v) {
    for (size_t i = 1; i < p->n; i++)
        if (!tensor_same_shape(p->items[0], p->items[i]))
            return diag_error(l->d, l->n->loc,
                              "%s: '%s' changes its shape from one iteration to the next",
                              node_text(l->n), diag_name(l->d, v->name));
    return true;
}

static bool join_parts(const Bodies *l, size_t out, int64_t axis, bool reverse) {
    const Parts *p = &l->parts[out - l->n_carried];
    const Value *part = l->body->out[l->out + out];
    Arena *a = l->e->results;
    int rank = p->n ? p->items[0]->rank : part->type.rank < 0 ? 0 : part->type.rank;
    int at = (int)(axis < 0 ? axis + rank + 1 : axis);
    Tensor **known = &l->e->known[l->n->out[out]->id];
    int64_t dims[MAX_RANK + 1];
    size_t count;
    uint8_t *bytes;
    if (rank >= MAX_RANK || at < 0 || at > rank)
        return diag_error(l->d, l->n->loc, "%s: axis %lld is out of range for rank %d",
                          node_text(l->n), (long long)axis, rank + 1);
    if (!p->n) {
        *known = no_parts(a, part->type, at);
        return true;
    }
    if (!same_parts(l, p, part))
        return false;
    for (int i = 0; i < rank; i++)
        dims[i + (i >= at)] = p->items[0]->dims[i];
    dims[at] = (int64_t)p->n;
    if (!tensor_count(rank + 1, dims, &count))
        return diag_error(l->d, l->n->loc, "%s: '%s' gets more than 2^31-1 elements",
                          node_text(l->n), diag_name(l->d, l->n->out[out]->name));
    *known = tensor_new(a, p->items[0]->elem, rank + 1, dims, &bytes);
    for (size_t i = 0; i < p->n; i++)
        move_part(bytes, (uint8_t *)(uintptr_t)p->items[i]->data, *known, at,
                  (int64_t)(reverse ? p->n - 1 - i : i), true);
    return true;
}

static bool is_wide(const Bodies *l, const Value *v) {
    return elem_bits(v->type.elem) >= 8 ||
           diag_error(l->d, l->n->loc, "%s: '%s' of %s cannot be scanned here", node_text(l->n),
                      diag_name(l->d, v->name), elem_name(v->type.elem));
}

/* ---- one iteration ---- */

/* What a Scan carries. */
static bool keeps_shape(const Bodies *l, const Value *v, const Tensor *next) {
    const Tensor *now = evaluator_value(l->e, v);
    Arena *a = l->e->results;
    return l->n->def->reshapes || tensor_same_shape(now, next) ||
           diag_error(l->d, l->n->loc, "%s: '%s', which it carries, was %s and becomes %s",
                      node_text(l->n), diag_name(l->d, v->name),
                      type_text(a, value_type_now(a, v, now)),
                      type_text(a, value_type_now(a, v, next)));
}

/* What the body reads next time: in memory of its own, as that of this iteration is given back. */
static bool carry(const Bodies *l, Arena *to) {
    Tensor **next = NEW_ARRAY(to, Tensor *, l->n_carried + 1);
    for (size_t i = 0; i < l->n_carried; i++) {
        next[i] = tensor_copy(to, evaluator_value(l->e, l->body->out[l->out + i]));
        if (!keeps_shape(l, l->body->in[l->in + i], next[i]))
            return false;
    }
    for (size_t i = 0; i < l->n_carried; i++)
        l->e->known[l->body->in[l->in + i]->id] = next[i];
    return true;
}

static void keep_parts(const Bodies *l, Arena *to) {
    for (size_t i = l->n_carried; i < l->n->n_out; i++) {
        Parts *p = &l->parts[i - l->n_carried];
        if (l->n->out[i])
            ARENA_PUSH(to, p->items, p->n, p->cap,
                       tensor_copy(to, evaluator_value(l->e, l->body->out[l->out + i])));
    }
}

/* Two arenas take turns: what one iteration made is there until the next is over. `*again` is the
 * body's own condition, where it has one. */
static bool iterate(const Bodies *l, Arena *now, Arena *results, bool *again) {
    if (l->e->rounds++ == LOOP_MOST)
        return diag_error(l->d, l->n->loc, LOOP_ENDLESS, node_text(l->n), LOOP_MOST);
    l->e->results = now;
    for (size_t i = 0; i < l->body->n_in; i++)
        evaluator_show(l->e, l->body->in[i]);
    bool ok = evaluate_graph(l->e, l->body, l->d);
    l->e->results = results;
    if (!ok)
        return false;
    if (l->out) {
        const Tensor *t = evaluator_value(l->e, l->body->out[0]);
        *again = t && t->count == 1 && tensor_int(t, 0);
    }
    if (!carry(l, now))
        return false;
    keep_parts(l, results);
    return true;
}

/* The carried values as they are when the loop is over. */
static void yield(const Bodies *l) {
    for (size_t i = 0; i < l->n_carried && i < l->n->n_out; i++)
        if (l->n->out[i])
            l->e->known[l->n->out[i]->id] =
                tensor_copy(l->e->results, evaluator_value(l->e, l->body->in[l->in + i]));
}

static Bodies bodies(Evaluator *e, const Node *n, const Graph *body, size_t carried, Diags *d) {
    return (Bodies){.e = e,
                    .n = n,
                    .body = body,
                    .n_carried = carried,
                    .parts = NEW_ARRAY(e->results, Parts, n->n_out + 1),
                    .d = d};
}

static bool begin(const Bodies *l, const OpCtx *c, size_t first) {
    for (size_t i = 0; i < l->n_carried; i++) {
        const Value *v = op_in(c, first + i);
        if (!v)
            return diag_error(l->d, l->n->loc, "%s: a carried value has no beginning",
                              node_text(l->n));
        l->e->known[l->body->in[l->in + i]->id] =
            tensor_copy(l->e->results, evaluator_value(l->e, v));
    }
    for (size_t i = l->n_carried; i < l->n->n_out; i++)
        if (l->n->out[i] && !is_wide(l, l->n->out[i]))
            return false;
    return true;
}

/* ---- the three ---- */

static bool run_loop(const Bodies *l, const Graph *body, int64_t most, bool again) {
    Evaluator *e = l->e;
    Arena *results = e->results, *turns[2] = {arena_scratch(results), arena_scratch(results)};
    bool ok = true;
    int64_t done = 0;
    for (; ok && again && done < most; done++) {
        Arena *now = turns[done % 2];
        arena_clear(now);
        if (l->in) {
            e->known[body->in[0]->id] = number(now, ELEM_INT64, done);
            e->known[body->in[1]->id] = number(now, ELEM_BOOL, 1);
        }
        ok = iterate(l, now, results, &again);
    }
    if (ok)
        yield(l);
    arena_free(turns[0]);
    arena_free(turns[1]);
    return ok;
}

/* The number that an operand of one element is; `none` where it is left out. */
static bool one_number(const Bodies *l, const Value *v, int64_t none, int64_t *out) {
    const Tensor *t = v ? evaluator_value(l->e, v) : NULL;
    *out = t && t->count == 1 ? tensor_int(t, 0) : none;
    return !v || (t && t->count == 1) ||
           diag_error(l->d, l->n->loc, "%s: '%s' is not one number", node_text(l->n),
                      diag_name(l->d, v->name));
}

static bool evaluate_loop(Evaluator *e, const Node *n, const OpCtx *c, Diags *d) {
    const Graph *body = ((const LoopAttrs *)c->attrs)->body;
    Bodies l = bodies(e, n, body, loop_carried(c), d);
    int64_t most, again;
    l.in = 2;
    l.out = 1;
    if (!one_number(&l, op_in(c, 0), INT64_MAX, &most) || !one_number(&l, op_in(c, 1), 1, &again) ||
        !begin(&l, c, 2) || !run_loop(&l, body, most, again != 0))
        return false;
    for (size_t i = l.n_carried; i < n->n_out; i++)
        if (n->out[i] && !join_parts(&l, i, 0, false))
            return false;
    return true;
}

/* An element of each scanned operand; of the operator's laws those that need shapes were not looked
 * at yet. */
static bool take_scanned(const Bodies *l, const OpCtx *c, int64_t length, int64_t at) {
    const ScanAttrs *a = c->attrs;
    for (size_t i = l->n_carried; i < c->n_in; i++) {
        const Tensor *t = evaluator_value(l->e, op_in(c, i));
        size_t k = i - l->n_carried;
        int64_t axis = scan_int(a->scan_input_axes, k);
        axis += axis < 0 ? t->rank : 0;
        if (axis < 0 || axis >= t->rank || t->dims[axis] != length || elem_bits(t->elem) < 8)
            return op_error_in(c, i, "cannot be scanned: operands to scan have one length");
        bool back = scan_int(a->scan_input_directions, k) != 0;
        l->e->known[l->body->in[i]->id] =
            take_part(l->e->results, t, (int)axis, back ? length - 1 - at : at);
    }
    return true;
}

static int64_t length_now(const Bodies *l, const OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    const Tensor *t = evaluator_value(l->e, op_in(c, l->n_carried));
    int64_t axis = scan_int(a->scan_input_axes, 0);
    axis += axis < 0 ? t->rank : 0;
    return axis < 0 || axis >= t->rank ? -1 : t->dims[axis];
}

static bool evaluate_scan(Evaluator *e, const Node *n, const OpCtx *c, Diags *d) {
    const ScanAttrs *a = c->attrs;
    Bodies l = bodies(e, n, a->body, c->n_in - (size_t)a->num_scan_inputs, d);
    int64_t length = length_now(&l, c);
    Arena *results = e->results, *turns[2] = {arena_scratch(results), arena_scratch(results)};
    bool ok = begin(&l, c, 0), again = true;
    if (length < 0)
        ok = op_error_in(c, l.n_carried, "has no such axis to scan");
    for (int64_t i = 0; ok && i < length; i++) {
        arena_clear(turns[i % 2]);
        e->results = turns[i % 2];
        ok = take_scanned(&l, c, length, i);
        e->results = results;
        ok = ok && iterate(&l, turns[i % 2], results, &again);
    }
    if (ok)
        yield(&l);
    arena_free(turns[0]);
    arena_free(turns[1]);
    for (size_t i = l.n_carried; ok && i < n->n_out; i++)
        if (n->out[i])
            ok = join_parts(&l, i, scan_int(a->scan_output_axes, i - l.n_carried),
                            scan_int(a->scan_output_directions, i - l.n_carried) != 0);
    return ok;
}

/* A branch sees the values around it. */
static bool evaluate_if(Evaluator *e, const Node *n, Diags *d) {
    const Attr *yes = node_attr(n, "then_branch"), *no = node_attr(n, "else_branch");
    Bodies l = bodies(e, n, NULL, 0, d);
    int64_t condition;
    if (!one_number(&l, n->in[0], 0, &condition))
        return false;
    const Graph *branch = (condition ? yes : no)->v.g[0];
    if (!evaluate_graph(e, branch, d))
        return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            e->known[n->out[i]->id] = (Tensor *)(uintptr_t)evaluator_value(e, branch->out[i]);
    return true;
}

static bool evaluate_node(Evaluator *e, const Node *n, Diags *d) {
    OpCtx c = op_ctx(n, d);
    if (n->def->yields_results)
        return evaluate_if(e, n, d);
    if (e->loops == 1)
        e->rounds = 0;
    if (n->def->reshapes)
        return evaluate_loop(e, n, &c, d);
    if (n->def->enter && n->def->enter(&c))
        return evaluate_scan(e, n, &c, d);
    return diag_error(d, n->loc, "%s cannot run where shapes depend on the data", node_text(n));
}

bool evaluate_bodies(Evaluator *e, const Node *n, Diags *d) {
    bool loops = n->def && !n->def->yields_results;
    e->loops += loops;
    bool ok = evaluate_node(e, n, d);
    e->loops -= loops;
    for (size_t i = 0; ok && i < n->n_out; i++)
        ok = !n->out[i] || evaluator_made(e, n->out[i], d);
    return ok;
}
