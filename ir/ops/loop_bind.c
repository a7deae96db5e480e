/* Running Loop and Scan: the calls of the body once, between CALL_LOOP and CALL_NEXT. What is
 * carried lies in the buffers of the body's inputs, to which its results are copied at the end of
 * each iteration; scanned values are taken from and put into their tensors at the number of the
 * iteration.
 */
#include <assert.h>

#include "ir/ops/loop.h"
#include "program/binder.h"

typedef struct Loop {
    Binder *b;
    const Node *n;
    const Graph *body;
    int done; /* buffers: iterations so far, whether there is to be another */
    int condition;
    size_t n_carried, in, out; /* the first carried one among the body's inputs and results */
} Loop;

static int constant(Binder *b, ElemType e, int64_t v) {
    uint8_t bytes[8] = {0};
    elem_store_int(e, bytes, 0, v);
    return bind_const(b, e, 1, bytes, "loop");
}

static bool same_shape(const Loop *l, const Value *x, const Value *y) {
    size_t n, m;
    if (type_count(x->type, &n) && type_count(y->type, &m) && type_same_shape(x->type, y->type))
        return true;
    return bind_unsupported(l->b, l->n, "'%s' changes its shape from one iteration to the next",
                            diag_name(binder_diags(l->b), x->name));
}

/* Where the value has to be copied before the states change: it is another one of them. */
static bool is_state(const Loop *l, int buffer, int own) {
    bool state =
        bind_same_bytes(l->b, buffer, l->done) || bind_same_bytes(l->b, buffer, l->condition);
    for (size_t i = 0; i < l->n_carried; i++)
        state |= bind_same_bytes(l->b, buffer, bind_value(l->b, l->body->in[l->in + i]));
    return state && !bind_same_bytes(l->b, buffer, own);
}

/* The body's result, in memory that the other states do not share. */
static int result(const Loop *l, const Value *v, int own) {
    int from = bind_value(l->b, v);
    if (!is_state(l, from, own))
        return from;
    const Buffer *like = bind_buffer(l->b, from);
    int to = bind_temp(l->b, like->elem, like->count);
    bind_copy(l->b, l->n, from, to);
    return to;
}

static bool start(Loop *l, const Value *inner, const Value *first) {
    if (!first)
        return bind_unsupported(l->b, l->n, "a carried value has no beginning");
    if (!same_shape(l, inner, first))
        return false;
    int from = bind_value(l->b, first), to = bind_value(l->b, inner);
    bind_copy(l->b, l->n, from, to);
    return true;
}

/* The end of an iteration: all results are read before any state changes. */
static bool carry(Loop *l, const Value *condition) {
    int *from = NEW_ARRAY(binder_arena(l->b), int, l->n_carried + 1);
    for (size_t i = 0; i < l->n_carried; i++) {
        const Value *inner = l->body->in[l->in + i], *next = l->body->out[l->out + i];
        if (!same_shape(l, inner, next))
            return false;
        from[i] = result(l, next, bind_value(l->b, inner));
    }
    int again = condition ? result(l, condition, l->condition) : l->condition;
    for (size_t i = 0; i < l->n_carried; i++) {
        int to = bind_value(l->b, l->body->in[l->in + i]);
        if (!bind_same_bytes(l->b, from[i], to))
            bind_copy(l->b, l->n, from[i], to);
    }
    if (!bind_same_bytes(l->b, again, l->condition))
        bind_copy(l->b, l->n, again, l->condition);
    Broadcast one = {.rank = 1, .dim = {1}, .as = {1}, .bs = {1}};
    return bind_binary(l->b, l->n, "add", ELEM_INT64, one,
                       (int[]){l->done, constant(l->b, ELEM_INT64, 1), l->done});
}

/* The element of a scanned tensor in this iteration, from it or to it. */
static bool move(const Loop *l, bool puts, const Value *whole, const Value *part, int64_t axis,
                 bool reverse) {
    Type t = whole->type;
    int at = (int)(axis < 0 ? axis + t.rank : axis);
    size_t all, one;
    assert(at >= 0 && at < t.rank);
    if (!type_count(t, &all) || !type_count(part->type, &one) ||
        all != one * (size_t)t.dims[at].value)
        return bind_unsupported(l->b, l->n, "'%s' is not of the shape of elements of '%s'",
                                diag_name(binder_diags(l->b), part->name),
                                diag_name(binder_diags(l->b), whole->name));
    bool first = puts && at == 0 && !reverse; /* how many there will be is no matter then */
    qk_take_at_params p = {.outer = bind_extent(t, 0, at), /* put_at has the same */
                           .axis = first ? 0 : (int32_t)t.dims[at].value,
                           .inner = bind_extent(t, at + 1, t.rank),
                           .reverse = reverse};
    int from = bind_value(l->b, puts ? part : whole), to = bind_value(l->b, puts ? whole : part);
    ElemType e = bind_buffer(l->b, from)->elem;
    return bind_call(l->b, l->n, bind_kernel(l->b, puts ? "put_at" : "take_at", 1, &e), &p,
                     sizeof p, 3, (int[]){from, l->done, to});
}

static bool put(const Loop *l, size_t out, size_t i, int64_t axis, bool reverse) {
    const Value *whole = l->n->out[out], *part = l->body->out[i];
    size_t count;
    if (!whole)
        return true;
    if (!type_count(part->type, &count))
        return bind_unsupported(l->b, l->n, "'%s' has no fixed shape",
                                diag_name(binder_diags(l->b), part->name));
    return move(l, true, whole, part, axis, reverse);
}

static void results(const Loop *l) {
    for (size_t i = 0; i < l->n_carried; i++)
        if (i < l->n->n_out && l->n->out[i])
            bind_alias(l->b, l->n, l->n->out[i], l->body->in[l->in + i]);
}

/* The states with what they begin as, and the loop's first call. */
static bool begin(Loop *l, const Value *const *first, int condition, int most) {
    for (size_t i = 0; i < l->n_carried; i++)
        if (!start(l, l->body->in[l->in + i], first[i]))
            return false;
    for (size_t i = l->n_carried; i < l->n->n_out; i++)
        if (l->n->out[i])
            bind_value(l->b, l->n->out[i]);
    bind_copy(l->b, l->n, constant(l->b, ELEM_INT64, 0), l->done);
    bind_copy(l->b, l->n, condition, l->condition);
    bind_loop(l->b, l->n, l->condition, l->done, most);
    for (size_t i = 0; i < l->n_carried; i++)
        bind_body_input(l->b, l->n, l->body->in[l->in + i]);
    return true;
}

static bool end(const Loop *l, bool ok) {
    bind_control(l->b, l->n, CALL_NEXT, -1);
    bind_control(l->b, l->n, CALL_END, -1);
    if (ok)
        results(l);
    return ok;
}

/* ---- Loop ---- */

static bool one_element(const Loop *l, const Value *v, ElemType e) {
    size_t count;
    return (v->type.kind == TYPE_TENSOR && v->type.elem == e && type_count(v->type, &count) &&
            count == 1) ||
           bind_unsupported(l->b, l->n, "'%s' is not one %s",
                            diag_name(binder_diags(l->b), v->name), elem_name(e));
}

/* How often at most: the operand, unless it is a constant that says nothing. */
static bool most_trips(const Loop *l, const OpCtx *c, int *buffer) {
    const Value *v = op_in(c, 0);
    const Tensor *t = op_const(c, 0);
    *buffer = v ? bind_value(l->b, v) : constant(l->b, ELEM_INT64, INT64_MAX);
    if (loop_trips(c) > LOOP_MOST)
        return bind_unsupported(l->b, l->n, "it runs %lld times, more than %d",
                                (long long)tensor_int(t, 0), LOOP_MOST);
    return !v || one_element(l, v, ELEM_INT64);
}

/* Of scanned values there is room for as many as the node's results may have: there the loop ends,
 * and looks whether it would go on. */
typedef struct Room {
    const LengthBound *bound; /* NULL: how often it runs is known, or nothing is scanned */
    int trips;                /* as the operand has them; -1: it is left out */
    int64_t most;
} Room;

static bool make_room(const Loop *l, const OpCtx *c, Room *room, int *most) {
    *room = (Room){.trips = op_in(c, 0) ? *most : -1};
    if (l->n->n_out <= l->n_carried || loop_trips(c) >= 0)
        return true;
    room->bound = binder_bound(l->b, l->n);
    if (!room->bound)
        return bind_unsupported(l->b, l->n,
                                "how many elements '%s' gets is not known before it runs",
                                diag_name(binder_diags(l->b), l->n->out[l->n_carried]->name));
    room->most = room->bound->stated ? room->bound->length : bind_bound(l->b, l->n, INT32_MAX);
    qk_loop_most_params p = {.room = room->most};
    *most = bind_temp(l->b, ELEM_INT64, 1);
    return bind_call(l->b, l->n, "qk_loop_most", &p, sizeof p, 2, (int[]){room->trips, *most});
}

static bool check_room(const Loop *l, const Room *room) {
    qk_loop_length_params p = {.beyond = room->most + 1};
    if (!room->bound)
        return true;
    int length = bind_temp(l->b, ELEM_INT64, 1);
    if (!bind_call(l->b, l->n, "qk_loop_length", &p, sizeof p, 4,
                   (int[]){room->trips, l->condition, l->done, length}))
        return false;
    binder_check_length(l->b, room->bound, length);
    return true;
}

bool loop_bind(Binder *b, const Node *n, const OpCtx *c) {
    Graph *g = ((const LoopAttrs *)c->attrs)->body;
    Loop l = {.b = b, .n = n, .body = g, .n_carried = loop_carried(c), .in = 2, .out = 1};
    Room room;
    int most;
    const Value *start = op_in(c, 1);
    if (!one_element(&l, g->in[0], ELEM_INT64) || !one_element(&l, g->in[1], ELEM_BOOL) ||
        !one_element(&l, g->out[0], ELEM_BOOL) || (start && !one_element(&l, start, ELEM_BOOL)) ||
        !most_trips(&l, c, &most) || !make_room(&l, c, &room, &most))
        return false;
    l.done = bind_value(b, g->in[0]);
    l.condition = bind_value(b, g->in[1]);
    if (!begin(&l, (const Value *const *)c->in + 2,
               start ? bind_value(b, start) : constant(b, ELEM_BOOL, 1), most))
        return false;
    bool ok = bind_graph(b, g);
    for (size_t i = l.n_carried; ok && i < n->n_out; i++)
        ok = put(&l, i, 1 + i, 0, false);
    return end(&l, ok && carry(&l, g->out[0])) && check_room(&l, &room);
}

/* ---- Scan ---- */

bool scan_bind(Binder *b, const Node *n, const OpCtx *c) {
    const ScanAttrs *a = c->attrs;
    size_t n_scanned = (size_t)a->num_scan_inputs;
    if (c->opset < 9)
        return bind_unsupported(b, n, "it has a batch dimension, as before opset 9");
    Loop l = {.b = b,
              .n = n,
              .body = a->body,
              .n_carried = c->n_in - n_scanned,
              .done = bind_temp(b, ELEM_INT64, 1),
              .condition = bind_temp(b, ELEM_BOOL, 1)};
    int always = constant(b, ELEM_BOOL, 1), length = constant(b, ELEM_INT64, scan_length(c));
    if (!begin(&l, (const Value *const *)c->in, always, length))
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < n_scanned; i++) {
        const Value *whole = op_in(c, l.n_carried + i), *part = a->body->in[l.n_carried + i];
        ok = move(&l, false, whole, part, scan_int(a->scan_input_axes, i),
                  scan_int(a->scan_input_directions, i) != 0);
        bind_body_input(b, n, part);
    }
    ok = ok && bind_graph(b, a->body);
    for (size_t i = l.n_carried; ok && i < n->n_out; i++)
        ok = put(&l, i, i, scan_int(a->scan_output_axes, i - l.n_carried),
                 scan_int(a->scan_output_directions, i - l.n_carried) != 0);
    return end(&l, ok && carry(&l, NULL));
}
