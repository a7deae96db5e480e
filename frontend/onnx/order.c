/* Nodes of the main graph that do not stand in the order of their uses. onnxruntime sorts those (of
 * the main graph alone), so they are read, each behind what it uses. */
#include "frontend/onnx/read.h"

typedef struct Locals { /* names that a body defines, and those around it */
    const struct Locals *outer;
    Map *names;
} Locals;

typedef struct Uses { /* of the nodes, by index: those of node i begin at first[i] */
    Arena *arena;
    Map *producers; /* name -> its node's index + 1 */
    size_t *of, *first;
    size_t n, cap;
} Uses;

static void add_name(Map *names, bool has, ProtobufCBinaryData b, size_t node) {
    Str name = pb_str(has, b);
    if (name.n && !map_get(names, name))
        map_set(names, name, (void *)(node + 1));
}

static void add_use(Uses *u, const Locals *locals, bool has, ProtobufCBinaryData b) {
    Str name = pb_str(has, b);
    for (; locals; locals = locals->outer)
        if (map_get(locals->names, name))
            return;
    size_t node = name.n ? (size_t)map_get(u->producers, name) : 0;
    if (node)
        ARENA_PUSH(u->arena, u->of, u->n, u->cap, node - 1);
}

static void add_node(Uses *u, const Locals *locals, const Onnx__NodeProto *p);

static void add_body(Uses *u, const Locals *outer, const Onnx__GraphProto *g) {
    Locals locals = {outer, map_new(u->arena)};
    for (size_t i = 0; i < g->n_input; i++)
        add_name(locals.names, g->input[i]->has_name, g->input[i]->name, 0);
    for (size_t i = 0; i < g->n_initializer; i++)
        add_name(locals.names, g->initializer[i]->has_name, g->initializer[i]->name, 0);
    for (size_t i = 0; i < g->n_sparse_initializer; i++) {
        const Onnx__TensorProto *t = g->sparse_initializer[i]->values;
        if (t)
            add_name(locals.names, t->has_name, t->name, 0);
    }
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            add_name(locals.names, true, g->node[i]->output[k], 0);
    for (size_t i = 0; i < g->n_node; i++)
        add_node(u, &locals, g->node[i]);
    for (size_t i = 0; i < g->n_output; i++)
        add_use(u, &locals, g->output[i]->has_name, g->output[i]->name);
}

static void add_node(Uses *u, const Locals *locals, const Onnx__NodeProto *p) {
    for (size_t i = 0; i < p->n_input; i++)
        add_use(u, locals, true, p->input[i]);
    for (size_t i = 0; i < p->n_attribute; i++) {
        const Onnx__AttributeProto *a = p->attribute[i];
        if (a->g)
            add_body(u, locals, a->g);
        for (size_t k = 0; k < a->n_graphs; k++)
            add_body(u, locals, a->graphs[k]);
    }
}

/* Which of the nodes each uses; `late` is the first that uses itself or a later one, or n. */
static Uses uses_of_nodes(Arena *a, size_t n, Onnx__NodeProto **nodes, size_t *late) {
    Uses u = {.arena = a, .producers = map_new(a), .first = NEW_ARRAY(a, size_t, n + 1)};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->n_output; k++)
            add_name(u.producers, true, nodes[i]->output[k], i);
    for (size_t i = 0; i < n; i++) {
        add_node(&u, NULL, nodes[i]);
        u.first[i + 1] = u.n;
        for (size_t k = u.first[i]; k < u.n; k++)
            if (*late == n && u.of[k] >= i)
                *late = i;
    }
    return u;
}

/* Depth first without recursion, in the file's order otherwise. False where there is a cycle. */
static bool sort_from(const Uses *u, size_t root, char *state, size_t *stack, size_t *at,
                      size_t *order, size_t *done) {
    enum { UNSEEN, OPEN, DONE };
    size_t depth = 0;
    if (state[root] == UNSEEN)
        stack[depth++] = root;
    while (depth) {
        size_t node = stack[depth - 1];
        state[node] = OPEN;
        if (u->first[node] + at[node] == u->first[node + 1]) {
            state[node] = DONE;
            order[(*done)++] = node;
            depth--;
            continue;
        }
        size_t next = u->of[u->first[node] + at[node]++];
        if (state[next] == OPEN)
            return false;
        if (state[next] == UNSEEN)
            stack[depth++] = next;
    }
    return true;
}

static bool sort(const Uses *u, size_t n, size_t *order) {
    size_t *stack = NEW_ARRAY(u->arena, size_t, n), *at = NEW_ARRAY(u->arena, size_t, n), done = 0;
    char *state = NEW_ARRAY(u->arena, char, n);
    for (size_t i = 0; i < n; i++)
        if (!sort_from(u, i, state, stack, at, order, &done))
            return false;
    return true;
}

const size_t *node_order(Reader *r, size_t n, Onnx__NodeProto **nodes, size_t *late) {
    Arena *scratch = arena_scratch(r->arena);
    *late = n;
    Uses u = uses_of_nodes(scratch, n, nodes, late);
    size_t *order = *late < n ? NEW_ARRAY(r->arena, size_t, n) : NULL;
    if (order && !sort(&u, n, order))
        order = NULL; /* the reader will find what is used before its definition */
    arena_free(scratch);
    return order;
}

void keep_node_order(const Onnx__GraphProto *p, Buf *places) {
    for (size_t i = 0; i < p->n_node; i++) {
        Str name = STR("");
        for (size_t k = 0; !name.n && k < p->node[i]->n_output; k++)
            name = pb_str(true, p->node[i]->output[k]);
        wire_put_bytes(places, PLACE_NODE, name);
    }
}
