/* passes/quantize/close_calls.c: what two calls share counts for each of them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/ops/op.h"
#include "passes/enclose.h"

static Node *node(Graph *g, const char *domain, const char *op, size_t n, Value *const *in) {
    Node *made = node_new(g, str_from(domain), str_from(op), n, 1);
    for (size_t i = 0; i < n; i++)
        made->in[i] = in[i];
    graph_append(g, made);
    node_add_output(made, 0, arena_strf(g->module->arena, "y%u", made->id), TYPE_UNKNOWN);
    return made;
}

/* A Gelu that is enclosed, with Add of `x` and `shared` in its place. */
static void add_call(Graph *g, Value *x, Value *shared) {
    UniqueNames *names = unique_names_new(g->module);
    Node *call = node(g, "com.microsoft", "Gelu", 1, &x);
    graph_add_output(g, call->out[0]);
    enclose_call(call, names, "test");
    Node *body = node_new(g, STR_NONE, STR("Add"), 2, 1);
    body->in[0] = call->in[0];
    body->in[1] = shared;
    node_take_result(body, 0, call->out[0]);
    node_insert_before(call, body);
    node_remove(call);
}

static size_t count(const Graph *g, const char *op) {
    size_t n = 0;
    FOR_NODES(at, g)
    n += str_is(at->op, op);
    return n;
}

/* Two calls of what a node of `op` makes. */
static void check(const char *op, ElemType e, size_t whole) {
    Arena *a = arena_new(0, NULL);
    Diags *d = diags_new(a, NULL, false);
    Module *m = module_new(a, d);
    Graph *g = m->graph = graph_new(m, STR("g"));
    int64_t dims[] = {2};
    module_set_opset(m, STR(""), 21);
    module_set_opset(m, STR("com.microsoft"), 1);
    Value *in[] = {graph_add_input(g, STR("u"), type_fixed(a, e, 1, dims)),
                   graph_add_input(g, STR("s"), type_fixed(a, ELEM_FLOAT, 0, NULL))};
    Value *x = graph_add_input(g, STR("x"), type_fixed(a, ELEM_FLOAT, 1, dims));
    Value *shared = node(g, "", op, 2, in)->out[0];
    add_call(g, x, shared);
    add_call(g, x, shared);
    assert_true(module_resolve(m, d) && module_infer(m, d));
    PassContext c = {.d = d};
    assert_true(pass_close_calls(m, &c));
    assert_int_equal(count(g, "Gelu"), whole);
    assert_int_equal(count(g, "Add"), 2 - whole);
    module_free(m);
}

static void test_integers_count_for_each(void **state) {
    (void)state;
    check("DequantizeLinear", ELEM_INT8, 0);
}

static void test_floats_keep_both(void **state) {
    (void)state;
    check("Mul", ELEM_FLOAT, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_integers_count_for_each),
                                       cmocka_unit_test(test_floats_keep_both)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
