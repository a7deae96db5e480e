/* ir/later: constants that are made when they are written, and who may wait */
#include "file_tools.h"
#include "ir/later.h"
#include "support/store.h"

enum { SIZE = 300000 };

typedef struct Made {
    int times;
    uint8_t first;
} Made;

static void count_up(const Module *m, const void *ctx, uint8_t *out) {
    Made *made = (Made *)(uintptr_t)ctx;
    (void)m;
    made->times++;
    for (size_t i = 0; i < SIZE; i++) {
        assert_int_equal(out[i], 0);
        out[i] = (uint8_t)(made->first + i);
    }
}

static void expect(const uint8_t *p, uint8_t first) {
    assert_non_null(p);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(p[i], (uint8_t)(first + i));
}

static Module *module(Fixture *f, size_t in_memory) {
    Arena *a = arena_new(0, NULL);
    Module *m = module_new(a, diags_new(a, NULL, false));
    m->graph = graph_new(m, STR("main"));
    store_open(a, in_dir(f, ""), in_memory);
    return m;
}

static Value *constant(Module *m, const char *name, Made *made, bool may_wait) {
    int64_t dims[] = {SIZE};
    Later how = {count_up, made};
    Tensor *t = later_tensor(m, ELEM_UINT8, 1, dims, how, may_wait);
    return graph_add_const(m->graph, str_from(name), tensor_type(m->arena, t), t);
}

static void test_waits(void **state) {
    Module *m = module(*state, 0);
    Made one = {.first = 3}, other = {.first = 7};
    Value *v = constant(m, "v", &one, true), *w = constant(m, "w", &other, true);
    assert_null(v->data->data);
    assert_int_equal(one.times + other.times, 0);
    assert_true(value_is_const(v));
    assert_true(module_data_required(m, m->diags)); /* it is not elided */

    expect(later_made(m, v->data), 3); /* a look, in the room of the next */
    expect(later_made(m, w->data), 7);
    expect(later_made(m, v->data), 3);
    assert_null(v->data->data);
    assert_int_equal(one.times, 2);

    later_make(m, v->data);
    later_make_all(m);
    later_make_all(m);
    assert_int_equal(one.times, 3);
    assert_int_equal(other.times, 2);
    expect(v->data->data, 3);
    expect(w->data->data, 7);
    assert_ptr_equal(later_made(m, w->data), w->data->data);
    module_free(m);
}

/* Who may not wait does not, nor does what has room in memory. */
static void test_does_not_wait(void **state) {
    Made made = {.first = 1};
    Module *on_disk = module(*state, 0), *roomy = module(*state, SIZE);
    Value *now = constant(on_disk, "now", &made, false),
          *fits = constant(roomy, "fits", &made, true),
          *next = constant(roomy, "next", &made, true);
    assert_int_equal(made.times, 2);
    expect(now->data->data, 1);
    expect(fits->data->data, 1);
    assert_null(next->data->data);
    module_free(on_disk);
    module_free(roomy);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_waits), TEST(test_does_not_wait)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
