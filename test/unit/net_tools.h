/* For the tests of programs: a network of floats, layer behind layer, and what it computes. */
#ifndef QXC_TEST_NET_TOOLS_H
#define QXC_TEST_NET_TOOLS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/exec.h"
#include "ir/ops/op.h"

typedef struct Net {
    Module *m;
    Value *last; /* of the layers so far */
    int64_t channels;
    uint32_t random;
} Net;

static inline float drawn(Net *net) {
    net->random = net->random * 1664525u + 1013904223u;
    return (float)(int32_t)net->random / 0x1p31f;
}

static inline Net net_new(int64_t images, int64_t channels, int64_t height, int64_t width) {
    Arena *a = arena_new(0, NULL);
    Net net = {.m = module_new(a, diags_new(a, NULL, false)), .channels = channels, .random = 1};
    Graph *g = net.m->graph = graph_new(net.m, STR("g"));
    module_set_opset(net.m, STR(""), 21);
    const int64_t dims[] = {images, channels, height, width};
    net.last = graph_add_input(g, STR("x"), type_fixed(a, ELEM_FLOAT, 4, dims));
    return net;
}

static inline Value *weights(Net *net, int rank, const int64_t *dims) {
    Arena *a = net->m->arena;
    Type t = type_fixed(a, ELEM_FLOAT, rank, dims);
    size_t count;
    assert_true(type_count(t, &count));
    float *data = NEW_ARRAY(a, float, count);
    for (size_t i = 0; i < count; i++)
        data[i] = drawn(net);
    Str name = arena_strf(a, "w%u", net->m->n_values);
    return graph_add_const(net->m->graph, name, t, tensor_of(a, ELEM_FLOAT, rank, dims, data));
}

/* A layer behind the last one, with an operand more unless that is NULL. */
static inline Node *layer(Net *net, const char *op, Value *with) {
    Node *n = node_new(net->m->graph, STR_NONE, str_from(op), with ? 2 : 1, 1);
    n->in[0] = net->last;
    if (with)
        n->in[1] = with;
    graph_append(net->m->graph, n);
    net->last = node_add_output(n, 0, arena_strf(net->m->arena, "y%u", n->id), TYPE_UNKNOWN);
    return n;
}

static inline Node *conv(Net *net, int64_t out, int64_t group, int64_t kernel) {
    const int64_t dims[] = {out, net->channels / group, kernel, kernel};
    const int64_t pads[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    Node *n = layer(net, "Conv", weights(net, 4, dims));
    node_set_ints(n, "pads", pads, 4);
    node_set_int(n, "group", group);
    net->channels = out;
    return n;
}

static inline Node *max_pool(Net *net, int64_t kernel, int64_t stride, int64_t top,
                             int64_t bottom) {
    Node *n = layer(net, "MaxPool", NULL);
    node_set_ints(n, "kernel_shape", (const int64_t[]){kernel, kernel}, 2);
    node_set_ints(n, "strides", (const int64_t[]){stride, stride}, 2);
    node_set_ints(n, "pads", (const int64_t[]){top, 0, bottom, 0}, 4);
    return n;
}

static inline void finish(Net *net) {
    graph_add_output(net->m->graph, net->last);
    assert_true(module_resolve(net->m, net->m->diags) && module_infer(net->m, net->m->diags));
}

/* What a program of the network makes of numbers that are always the same. */
static inline const void *result(Net *net, const Program *p) {
    Runner *r = runner_new(net->m->arena, p);
    float *x = runner_input(r, 0);
    size_t count;
    assert_true(type_count(net->m->graph->in[0]->type, &count));
    net->random = 7;
    for (size_t i = 0; i < count; i++)
        x[i] = drawn(net);
    assert_true(runner_run(r, net->m->diags));
    return runner_output(r, 0);
}

#endif
