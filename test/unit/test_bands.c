/* program, exec: calls in bands of rows give the bits of whole ones, in less memory; and what must
 * stay whole. */
#include "net_tools.h"
#include "program/bands.h"

static Program *build(Net *net, BandsAllowed bands, size_t enough) {
    ProgramOptions o = {.least_arena = true, .bands = bands, .enough_arena = enough};
    Program *p = program_build(net->m, &o, net->m->diags);
    assert_non_null(p);
    return p;
}

/* How many calls are in bands, where the result has the bits of the whole calls. */
static size_t banded(Net *net, BandsAllowed bands, size_t enough, Program **in_bands) {
    Program *whole = build(net, BANDS_NONE, 0), *p = build(net, bands, enough);
    size_t count;
    assert_int_equal(program_bands(whole).calls, 0);
    assert_true(type_count(net->last->type, &count));
    assert_memory_equal(result(net, p), result(net, whole), count * sizeof(float));
    size_t calls = program_bands(p).calls;
    assert_true(calls ? p->arena_bytes < whole->arena_bytes : p->arena_bytes == whole->arena_bytes);
    if (in_bands)
        *in_bands = p;
    return calls;
}

static size_t pools_banded(Net *net) {
    finish(net);
    size_t calls = banded(net, BANDS_POOLS, 0, NULL);
    module_free(net->m);
    return calls;
}

/* ---- what runs in bands ---- */

/* Kernels, strides and pads of the pool, beside heights that they do not divide. */
static void bits_of_the_whole(void **state) {
    (void)state;
    static const int64_t pools[][4] = {{2, 2, 0, 0}, {3, 2, 0, 0}, {3, 2, 1, 1}, {3, 3, 1, 0},
                                       {2, 3, 0, 0}, {5, 2, 2, 1}, {3, 2, 0, 2}, {1, 2, 0, 0}};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        for (int64_t height = 19; height < 24; height++) {
            Net net = net_new(1, 3, height, 11);
            conv(&net, 16, 1, 3);
            max_pool(&net, pools[i][0], pools[i][1], pools[i][2], pools[i][3]);
            assert_int_equal(pools_banded(&net), 2);
        }
}

/* Where the pool goes on by one row, a band keeps more rows than it makes. */
static void rows_kept_overlap(void **state) {
    (void)state;
    for (int64_t pad = 0; pad < 3; pad++) {
        Net net = net_new(1, 2, 40, 16);
        conv(&net, 24, 1, 3);
        max_pool(&net, 5, 1, pad, pad);
        layer(&net, "Relu", NULL);
        conv(&net, 2, 1, 1);
        finish(&net);
        Program *p;
        size_t calls = banded(&net, BANDS_CHAINS, 0, &p);
        assert_true(calls >= 2 && program_bands(p).moved > 0);
        module_free(net.m);
    }
}

static void several_images(void **state) {
    (void)state;
    for (int64_t images = 2; images < 5; images++) {
        Net net = net_new(images, 3, 15, 12);
        conv(&net, 16, 1, 3);
        max_pool(&net, 3, 2, 1, 0);
        assert_int_equal(pools_banded(&net), 2);
    }
}

static void groups(void **state) {
    (void)state;
    for (int64_t group = 2; group <= 4; group *= 2) {
        Net net = net_new(1, 8, 26, 12);
        conv(&net, 32, group, 3);
        max_pool(&net, 3, 3, 0, 0);
        assert_int_equal(pools_banded(&net), 2);
    }
}

static void chains_where_they_are_asked_for(void **state) {
    (void)state;
    Net net = net_new(1, 3, 48, 32);
    conv(&net, 16, 1, 3);
    conv(&net, 16, 16, 3);
    conv(&net, 24, 1, 1);
    node_set_ints(conv(&net, 24, 24, 3), "strides", (const int64_t[]){2, 2}, 2);
    conv(&net, 4, 1, 1);
    finish(&net);
    Program *whole = build(&net, BANDS_NONE, 0), *p;
    assert_int_equal(banded(&net, BANDS_POOLS, 0, NULL), 0);
    assert_true(banded(&net, BANDS_CHAINS, 0, &p) >= 4);
    assert_true(p->arena_bytes < whole->arena_bytes / 3);
    module_free(net.m);
}

/* No more bands than what is asked for takes. */
static void fewest_bands(void **state) {
    (void)state;
    Net net = net_new(1, 3, 64, 16);
    conv(&net, 16, 1, 3);
    max_pool(&net, 2, 2, 0, 0);
    finish(&net);
    Program *p, *whole = build(&net, BANDS_NONE, 0);
    size_t enough = whole->arena_bytes / 2, bands = 0;
    assert_int_equal(banded(&net, BANDS_POOLS, enough, &p), 2);
    assert_true(p->arena_bytes <= enough);
    for (size_t c = 0; c < p->n_calls; c++)
        bands = p->calls[c].bands ? p->calls[c].n_parts : bands;
    assert_int_equal(bands, 4);
    module_free(net.m);
}

/* ---- what stays whole ---- */

static void a_second_reader(void **state) {
    (void)state;
    Net net = net_new(1, 3, 24, 16);
    conv(&net, 16, 1, 3);
    Value *between = net.last;
    max_pool(&net, 2, 2, 0, 0);
    Value *pooled = net.last;
    net.last = between;
    layer(&net, "GlobalAveragePool", NULL);
    graph_add_output(net.m->graph, pooled);
    assert_int_equal(pools_banded(&net), 0);
}

static void an_output_between(void **state) {
    (void)state;
    for (int in_arena = 0; in_arena < 2; in_arena++) {
        Net net = net_new(1, 3, 24, 16);
        conv(&net, 16, 1, 3);
        graph_add_output(net.m->graph, net.last);
        max_pool(&net, 2, 2, 0, 0);
        finish(&net);
        ProgramOptions o = {.least_arena = true, .bands = BANDS_POOLS, .ports_in_arena = in_arena};
        Program *p = program_build(net.m, &o, net.m->diags);
        assert_true(p && !program_bands(p).calls);
        module_free(net.m);
    }
}

/* More memory is in use elsewhere, and hardly less would be here. */
static void no_gain(void **state) {
    (void)state;
    Net net = net_new(1, 3, 24, 16);
    conv(&net, 16, 1, 3);
    max_pool(&net, 2, 2, 0, 0);
    conv(&net, 128, 1, 1);
    assert_int_equal(pools_banded(&net), 0);
    net = net_new(1, 3, 2, 16); /* one row of the pool */
    conv(&net, 16, 1, 3);
    max_pool(&net, 2, 2, 0, 0);
    assert_int_equal(pools_banded(&net), 0);
}

/* The result of a depthwise Conv lies over its operand, which has no fewer bytes. */
static void in_place_already(void **state) {
    (void)state;
    Net net = net_new(1, 8, 26, 12);
    conv(&net, 8, 8, 3);
    max_pool(&net, 3, 3, 0, 0);
    assert_int_equal(pools_banded(&net), 0);
}

static void what_has_other_rows(void **state) {
    (void)state;
    Net net = net_new(1, 1, 24, 16);
    conv(&net, 1, 1, 3);
    Arena *a = net.m->arena; /* the same elements, in rows of another length */
    const int64_t rank[] = {4}, shape[] = {0, 1, 48, 8};
    Value *to = graph_add_const(net.m->graph, STR("shape"), type_fixed(a, ELEM_INT64, 1, rank),
                                tensor_of(a, ELEM_INT64, 1, rank, shape));
    layer(&net, "Reshape", to);
    max_pool(&net, 2, 2, 0, 0);
    assert_int_equal(pools_banded(&net), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_the_whole),
        cmocka_unit_test(rows_kept_overlap),
        cmocka_unit_test(several_images),
        cmocka_unit_test(groups),
        cmocka_unit_test(chains_where_they_are_asked_for),
        cmocka_unit_test(fewest_bands),
        cmocka_unit_test(a_second_reader),
        cmocka_unit_test(an_output_between),
        cmocka_unit_test(no_gain),
        cmocka_unit_test(in_place_already),
        cmocka_unit_test(what_has_other_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
