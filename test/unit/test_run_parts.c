/* exec: a Runner whose steps fall into parts gives the bits of one whose steps are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "exec/exec.h"
#include "ir/ops/op.h"
#include "program/split.h"

enum { CHANNELS = 16, HEIGHT = 65, WIDTH = 47 };

typedef struct Net {
    Module *m;
    Value *last; /* of the layers so far */
    uint32_t random;
} Net;

static float drawn(Net *net) {
    net->random = net->random * 1664525u + 1013904223u;
    return (float)(int32_t)net->random / 0x1p31f;
}

static Value *weights(Net *net, int rank, const int64_t *dims) {
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
static Node *layer(Net *net, const char *op, Value *with) {
    Node *n = node_new(net->m->graph, STR_NONE, str_from(op), with ? 2 : 1, 1);
    n->in[0] = net->last;
    if (with)
        n->in[1] = with;
    graph_append(net->m->graph, n);
    Str name = arena_strf(net->m->arena, "y%u", n->id);
    net->last = node_add_output(n, 0, name, TYPE_UNKNOWN);
    return n;
}

static void conv(Net *net, int64_t out, int64_t in, int64_t group, int64_t kernel) {
    const int64_t pads[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    Node *n = layer(net, "Conv", weights(net, 4, (const int64_t[]){out, in, kernel, kernel}));
    node_set_ints(n, "pads", pads, 4);
    node_set_int(n, "group", group);
    layer(net, "Relu", NULL);
}

static Net net_new(int64_t images) {
    Arena *a = arena_new(0, NULL);
    Net net = {.m = module_new(a, diags_new(a, NULL, false)), .random = 1};
    Graph *g = net.m->graph = graph_new(net.m, STR("g"));
    module_set_opset(net.m, STR(""), 21);
    const int64_t dims[] = {images, CHANNELS, HEIGHT, WIDTH};
    net.last = graph_add_input(g, STR("x"), type_fixed(a, ELEM_FLOAT, 4, dims));
    conv(&net, 64, CHANNELS, 1, 3);
    conv(&net, 64, 1, 64, 3);
    conv(&net, 64, 64, 1, 1);
    Node *pool = layer(&net, "MaxPool", NULL);
    node_set_ints(pool, "kernel_shape", (const int64_t[]){3, 3}, 2);
    node_set_ints(pool, "strides", (const int64_t[]){2, 2}, 2);
    conv(&net, 32, 32, 2, 3);
    graph_add_output(g, net.last);
    assert_true(module_resolve(net.m, net.m->diags) && module_infer(net.m, net.m->diags));
    return net;
}

/* What comes out, of a program whose calls fall into up to so many parts. */
static const void *result(Net *net, const ProgramOptions *o) {
    Program *p = program_build(net->m, o, net->m->diags);
    assert_non_null(p);
    assert_int_equal(program_is_split(p), o->run_parts > 1);
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

static void assert_same(int64_t images, ProgramOptions o) {
    static const int parts[] = {2, 4, 7, 16};
    Net net = net_new(images);
    const void *whole = result(&net, &o);
    size_t count;
    assert_true(type_count(net.last->type, &count));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        o.run_parts = parts[i];
        assert_memory_equal(result(&net, &o), whole, count * sizeof(float));
    }
    module_free(net.m);
}

static void parts_have_the_bits_of_the_whole(void **state) {
    (void)state;
    assert_same(1, (ProgramOptions){0});
    assert_same(3, (ProgramOptions){0});
    assert_same(1, (ProgramOptions){.observed = true, .partial = true});
    assert_same(1, (ProgramOptions){.keep_all = true});
}

static void little_work_is_whole(void **state) {
    (void)state;
    Arena *a = arena_new(0, NULL);
    Net net = {.m = module_new(a, diags_new(a, NULL, false)), .random = 1};
    Graph *g = net.m->graph = graph_new(net.m, STR("g"));
    module_set_opset(net.m, STR(""), 21);
    net.last = graph_add_input(g, STR("x"), type_fixed(a, ELEM_FLOAT, 4, (int64_t[]){1, 8, 9, 9}));
    conv(&net, 8, 8, 1, 3);
    graph_add_output(g, net.last);
    assert_true(module_resolve(net.m, net.m->diags) && module_infer(net.m, net.m->diags));
    Program *p = program_build(net.m, &(ProgramOptions){.run_parts = 4}, net.m->diags);
    assert_true(p && !program_is_split(p));
    module_free(net.m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_the_bits_of_the_whole),
        cmocka_unit_test(little_work_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
