/* exec: a Runner whose steps fall into parts gives the bits of one whose steps are whole. */
#include "net_tools.h"
#include "program/split.h"

enum { CHANNELS = 16, HEIGHT = 65, WIDTH = 47 };

static void conv_relu(Net *net, int64_t out, int64_t group, int64_t kernel) {
    conv(net, out, group, kernel);
    layer(net, "Relu", NULL);
}

static Net layers_of_all_kinds(int64_t images) {
    Net net = net_new(images, CHANNELS, HEIGHT, WIDTH);
    conv_relu(&net, 64, 1, 3);
    conv_relu(&net, 64, 64, 3);
    conv_relu(&net, 64, 1, 1);
    max_pool(&net, 3, 2, 0, 0);
    conv_relu(&net, 32, 2, 3);
    finish(&net);
    return net;
}

/* What comes out, of a program whose calls fall into up to so many parts. */
static const void *result_in_parts(Net *net, const ProgramOptions *o) {
    Program *p = program_build(net->m, o, net->m->diags);
    assert_non_null(p);
    assert_int_equal(program_is_split(p), o->run_parts > 1);
    return result(net, p);
}

static void assert_same(int64_t images, ProgramOptions o) {
    static const int parts[] = {2, 4, 7, 16};
    Net net = layers_of_all_kinds(images);
    const void *whole = result_in_parts(&net, &o);
    size_t count;
    assert_true(type_count(net.last->type, &count));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        o.run_parts = parts[i];
        assert_memory_equal(result_in_parts(&net, &o), whole, count * sizeof(float));
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
    Net net = net_new(1, 8, 9, 9);
    conv_relu(&net, 8, 1, 3);
    finish(&net);
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
