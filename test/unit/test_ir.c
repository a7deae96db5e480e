/* The IR's data: element types, how types print, quantization parameters, tensors, uses, names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/extra.h"
#include "ir/ir.h"

static int make_module(void **state) {
    Arena *a = arena_new(0, NULL);
    *state = module_new(a, diags_new(a, NULL, false));
    return 0;
}

static int free_module(void **state) {
    module_free(*state);
    return 0;
}

static void test_elements(void **state) {
    (void)state;
    static const ElemType all[] = {
#define ELEM(id, number, name, bits, kind) ELEM_##id,
#include "ir/elem.def"
#undef ELEM
    };
    for (size_t i = 1; i < sizeof all / sizeof *all; i++) {
        assert_true(elem_known(all[i]));
        assert_int_equal(elem_from_name(str_from(elem_name(all[i]))), all[i]);
    }
    assert_false(elem_known(0) || elem_known(29) || elem_known(1000) || elem_known(-1));
    assert_string_equal(elem_name(ELEM_INT1), "int1");
    assert_int_equal(elem_min(ELEM_INT4), -8);
    assert_int_equal(elem_max(ELEM_UINT2), 3);
    assert_int_equal(elem_min(ELEM_INT1), 0);
    assert_int_equal(elem_max(ELEM_INT1), 1);
    assert_int_equal(elem_max(ELEM_UINT32), UINT32_MAX);
    assert_int_equal(elem_bytes(ELEM_INT4, 3), 2);
    assert_int_equal(elem_bytes(ELEM_FLOAT6E2M3, 5), 4);
    assert_int_equal(elem_bytes(ELEM_UINT1, 9), 2);
}

static void expect_type(Arena *a, Type t, const char *text) {
    assert_string_equal(type_text(a, t), text);
}

static void test_types_print(void **state) {
    Arena *a = ((Module *)*state)->arena;
    Dim dims[] = {{-1, STR("N"), STR_NONE},
                  {-1, STR_NONE, STR_NONE},
                  {-1, STR("h*w"), STR_NONE},
                  {4, STR_NONE, STR("C")}};
    Type t = type_tensor(ELEM_FLOAT, 4, dims);
    expect_type(a, t, "float[N,?,\"h*w\",4 \"C\"]");
    expect_type(a, type_fixed(a, ELEM_BOOL, 0, NULL), "bool[]");
    Type any = {.kind = TYPE_TENSOR, .elem = ELEM_INT4, .rank = -1};
    expect_type(a, any, "int4[*]");
    Type seq = {.kind = TYPE_SEQ, .sub = &any}, map = {.kind = TYPE_MAP, .key = ELEM_INT64};
    map.sub = &seq;
    expect_type(a, map, "map<int64, seq<int4[*]>>");

    Quant *q = quant_per_tensor(a, ELEM_INT8, 0.0165f, 17);
    t = type_fixed(a, ELEM_FLOAT, 1, (int64_t[]){2});
    expect_type(a, type_quantized(t, q), "int8q<0.0165, 17>[2]");
    expect_type(a, type_tilde(t, q), "float[2] ~ int8q<0.0165, 17>");
    q->alias = STR("a b");
    expect_type(a, type_tilde(t, q), "float[2] ~ !\"a b\"");
    q->alias = STR("l::1.w");
    expect_type(a, type_quantized(t, q), "!l::1.w[2]");
    assert_int_equal(type_real_elem(type_quantized(t, q)), ELEM_FLOAT);
    assert_int_equal(type_tilde(type_quantized(t, q), q).elem, ELEM_FLOAT);
}

static void expect_quant(Arena *a, const Quant *q, const char *text) {
    Buf b = buf_new(a);
    quant_print(&b, q);
    assert_string_equal(buf_as_str(&b).s, text);
}

static void test_quants_print(void **state) {
    Module *m = *state;
    Arena *a = m->arena;
    Quant *q = quant_per_tensor(a, ELEM_INT8, 0.0078125f, 0);
    expect_quant(a, q, "int8q<2^-7, 0>");
    assert_string_equal(quant_schema(q), "SymmetricWithPower2Scale");
    q->n_zp = 0;
    q->has_range = true;
    q->lo = -127, q->hi = 127;
    q->expressed = ELEM_FLOAT16;
    q->scale_type = ELEM_BFLOAT16;
    expect_quant(a, q, "int8q<2^-7, range=-127:127, expr=float16, scale_type=bfloat16>");
    Quant *p = quant_per_axis(a, ELEM_UINT4, 1, 2, (float[]){0.1f, 0.2f}, (int64_t[]){3, 4});
    expect_quant(a, p, "uint4q<[0.1, 0.2], [3, 4], axis=1>");
    p->block[0] = 32;
    expect_quant(a, p, "uint4q<[0.1, 0.2], [3, 4], axis=1, block=32>");
    p->n_axes = 2, p->axis[0] = 0, p->axis[1] = 1, p->block[0] = 1, p->block[1] = 32;
    p->n_zp = 0;
    expect_quant(a, p, "uint4q<[0.1, 0.2], axis=[0, 1], block=[1, 32]>");
    p->kind = QUANT_UNKNOWN;
    expect_quant(a, p, "uint4q<?>");
    p->kind = QUANT_DYNAMIC;
    expect_quant(a, p, "uint4q<dynamic>");
    Graph *g = graph_new(m, STR("g"));
    p->kind = QUANT_ACC;
    p->acc_value[0] = graph_add_input(g, STR("x y"), TYPE_UNKNOWN);
    p->acc_quant[1] = quant_per_tensor(a, ELEM_INT8, 1, 0);
    ((Quant *)p->acc_quant[1])->alias = STR("w");
    expect_quant(a, p, "acc<%\"x y\", !w>");
}

static void test_quants_equal(void **state) {
    Arena *a = ((Module *)*state)->arena;
    float s[] = {0.5f, 0.25f};
    Quant *x = quant_per_axis(a, ELEM_INT8, 0, 2, s, NULL);
    Quant *y = quant_per_axis(a, ELEM_INT8, 0, 2, s, (int64_t[]){0, 0});
    assert_true(quant_equal(x, y));
    x->has_range = true, x->lo = -128, x->hi = 127;
    assert_true(quant_equal(x, y));
    x->lo = -127;
    assert_false(quant_equal(x, y));
    assert_false(quant_equal(y, quant_per_axis(a, ELEM_INT8, 1, 2, s, NULL)));
    assert_false(quant_equal(y, quant_per_axis(a, ELEM_INT8, 0, 2, s, (int64_t[]){0, 1})));
    Quant *z = quant_per_tensor(a, ELEM_INT8, NAN, 0);
    assert_true(quant_equal(z, quant_copy(a, z)));
    assert_false(quant_is_pow2(z) || !quant_is_pow2(y));
}

static void test_quant_bounds(void **state) {
    Arena *a = ((Module *)*state)->arena;
    Quant *x = quant_per_tensor(a, ELEM_UINT32, 1, 0);
    assert_true(quant_lo(x) == 0 && quant_hi(x) == UINT32_MAX);
    x->has_range = true, x->lo = 3, x->hi = 7;
    assert_true(quant_lo(x) == 3 && quant_hi(x) == 7);
    assert_false(quant_is_blocked(x));
    Quant *y = quant_per_axis(a, ELEM_INT8, 0, 2, (float[]){1, 2}, NULL);
    assert_false(quant_is_blocked(y));
    y->block[0] = 2;
    assert_true(quant_is_blocked(y));
    y->block[0] = 1, y->n_axes = 2;
    assert_true(quant_is_blocked(y));
}

static void test_quant_of_real(void **state) {
    Arena *a = ((Module *)*state)->arena;
    const Quant *q = quant_per_tensor(a, ELEM_INT8, 0.5F, 3);
    assert_int_equal(quant_of_real(q, 0, 0.25F), 3); /* ties to even, then the zero point */
    assert_int_equal(quant_of_real(q, 0, 0.75F), 5);
    assert_int_equal(quant_of_real(q, 0, -0.75F), 1);
    assert_int_equal(quant_of_real(q, 0, 62.0F), 127);
    assert_int_equal(quant_of_real(q, 0, 62.3F), 127);
    assert_int_equal(quant_of_real(q, 0, -1e30F), -128);
    assert_int_equal(quant_of_real(q, 0, INFINITY), 127);
    assert_int_equal(quant_of_real(q, 0, NAN), -128);
    Quant *narrow = quant_copy(a, q);
    narrow->has_range = true;
    narrow->lo = -127;
    narrow->hi = 100;
    assert_int_equal(quant_of_real(narrow, 0, -INFINITY), -127);
    assert_int_equal(quant_of_real(narrow, 0, 62.0F), 100);
    assert_int_equal(quant_of_real(narrow, 0, NAN), -128);
    const Quant *top = quant_per_tensor(a, ELEM_UINT8, 0x1p-126F, 255);
    assert_int_equal(quant_of_real(top, 0, 3e38F), 255); /* x / scale overflows */
    const Quant *wide = quant_per_tensor(a, ELEM_INT32, 1.0F, -1);
    assert_int_equal(quant_of_real(wide, 0, 16777216.0F), 16777215); /* the sum is exact */
    assert_int_equal(quant_of_real(wide, 0, 4e9F), INT32_MAX);
}

/* Of the grids of small floats: ties, saturation, NaN, both zeros. */
static void test_quant_floats(void **state) {
    Arena *a = ((Module *)*state)->arena;
    const struct {
        ElemType storage;
        float x; /* with scale 2 */
        unsigned bits;
    } cases[] = {
        {ELEM_FLOAT8E4M3FN, 34.0F, 0x58}, /* 17, between 16 and 18: the even one */
        {ELEM_FLOAT8E4M3FN, 38.0F, 0x5A}, /* 19, between 18 and 20 */
        {ELEM_FLOAT8E4M3FN, 896.0F, 0x7E},
        {ELEM_FLOAT8E4M3FN, 928.0F, 0x7E}, /* 464, a tie with what would be 480 */
        {ELEM_FLOAT8E4M3FN, -1e30F, 0xFE},
        {ELEM_FLOAT8E4M3FN, INFINITY, 0x7E},
        {ELEM_FLOAT8E4M3FN, NAN, 0x7F},
        {ELEM_FLOAT8E4M3FN, -0.0F, 0x80},
        {ELEM_FLOAT8E4M3FN, 0x1p-9F, 0x00}, /* half of the least: to zero, which is even */
        {ELEM_FLOAT8E4M3FN, 0x1.8p-9F, 0x01},
        {ELEM_FLOAT8E4M3FN, -0x1p-20F, 0x80},
        {ELEM_FLOAT8E4M3FNUZ, -0.0F, 0x00},
        {ELEM_FLOAT8E4M3FNUZ, 1e9F, 0x7F},
        {ELEM_FLOAT8E4M3FNUZ, NAN, 0x80},
        {ELEM_FLOAT8E5M2, INFINITY, 0x7B},
        {ELEM_FLOAT8E5M2, -INFINITY, 0xFB},
        {ELEM_FLOAT8E5M2, NAN, 0x7E},
        {ELEM_FLOAT8E5M2FNUZ, -1e9F, 0xFF},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Quant *q = quant_per_tensor(a, cases[i].storage, 2.0F, 0);
        assert_false(quant_is_integers(q));
        assert_int_equal(quant_bits(q, 0, cases[i].x), cases[i].bits);
        assert_false(quant_is_wide(q));
        assert_true(quant_zp_all_zero(q));
    }
    Quant *x = quant_per_tensor(a, ELEM_FLOAT8E4M3FN, 0.1F, 0), *y = quant_copy(a, x);
    y->n_zp = 0;
    assert_true(quant_equal(x, y));
    expect_quant(a, y, "float8e4m3fnq<0.1>");
    assert_false(quant_equal(x, quant_per_tensor(a, ELEM_FLOAT8E5M2, 0.1F, 0)));
    assert_false(quant_equal(x, quant_per_tensor(a, ELEM_UINT8, 0.1F, 0)));
    assert_true(elem_has_grid(ELEM_FLOAT8E5M2FNUZ) && elem_has_grid(ELEM_UINT32));
    assert_false(elem_has_grid(ELEM_FLOAT8E8M0) || elem_has_grid(ELEM_INT64) ||
                 elem_has_grid(ELEM_FLOAT16) || elem_has_grid(ELEM_BOOL));
    assert_int_equal(quant_bits(quant_per_tensor(a, ELEM_INT8, 2.0F, 3), 0, 4.0F), 5);
}

static void test_quant_index(void **state) {
    Arena *a = ((Module *)*state)->arena;
    float s[6] = {0};
    const int64_t dims[] = {2, 3, 5};
    Quant *q = quant_per_axis(a, ELEM_INT8, 1, 3, s, NULL);
    assert_int_equal(quant_index(q, 3, dims, 29), 2);
    assert_int_equal(quant_index(q, 3, dims, 6), 1);
    q->n_axes = 2, q->axis[0] = 0, q->axis[1] = 2, q->block[1] = 2; /* a grid of 2 x 3 */
    assert_int_equal(quant_index(q, 3, dims, 4), 2);
    assert_int_equal(quant_index(q, 3, dims, 15 + 2), 4);
    assert_int_equal(quant_index(quant_per_tensor(a, ELEM_INT8, 1, 0), 3, dims, 29), 0);
}

static void test_packed_integers(void **state) {
    (void)state;
    static const ElemType types[] = {ELEM_INT1, ELEM_UINT1, ELEM_INT2,  ELEM_UINT2,
                                     ELEM_INT4, ELEM_UINT4, ELEM_INT16, ELEM_UINT64};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        uint8_t data[80];
        memset(data, 0xA5, sizeof data);
        int64_t lo = elem_min(types[k]), hi = elem_max(types[k]);
        for (size_t i = 0; i < 9; i++)
            elem_store_int(types[k], data, i, i % 2 ? lo : hi);
        for (size_t i = 0; i < 9; i++)
            assert_int_equal(elem_load_int(types[k], data, i), i % 2 ? lo : hi);
    }
    uint8_t nibbles[2] = {0};
    elem_store_int(ELEM_INT4, nibbles, 0, -8);
    elem_store_int(ELEM_INT4, nibbles, 1, 7);
    assert_int_equal(nibbles[0], 0x78); /* element 0 in the low bits */
}

static double float_of(Arena *a, ElemType e, unsigned bits) {
    uint8_t data[2] = {(uint8_t)bits, (uint8_t)(bits >> 8)};
    return tensor_float(tensor_of(a, e, 0, NULL, data), 0);
}

static void test_small_floats(void **state) {
    Arena *a = ((Module *)*state)->arena;
    assert_true(float_of(a, ELEM_FLOAT16, 0x3C01) == 1.0 + 1.0 / 1024);
    assert_true(float_of(a, ELEM_FLOAT16, 0x8001) == -ldexp(1, -24));
    assert_true(isinf(float_of(a, ELEM_FLOAT16, 0xFC00)));
    assert_true(float_of(a, ELEM_BFLOAT16, 0xC000) == -2);
    assert_true(float_of(a, ELEM_FLOAT8E4M3FN, 0x7E) == 448);
    assert_true(isnan(float_of(a, ELEM_FLOAT8E4M3FN, 0xFF)));
    assert_true(float_of(a, ELEM_FLOAT8E4M3FNUZ, 0x7F) == 240);
    assert_true(isnan(float_of(a, ELEM_FLOAT8E5M2FNUZ, 0x80)));
    assert_true(float_of(a, ELEM_FLOAT8E5M2, 0x7B) == 57344);
    assert_true(float_of(a, ELEM_FLOAT4E2M1, 0x0F) == -6);
    assert_true(float_of(a, ELEM_FLOAT6E3M2, 0x1F) == 28);
    assert_true(float_of(a, ELEM_FLOAT6E2M3, 0x1F) == 7.5);
    assert_true(float_of(a, ELEM_FLOAT8E8M0, 130) == 8);
}

static void test_tensor_count(void **state) {
    (void)state;
    size_t n;
    assert_true(tensor_count(0, NULL, &n) && n == 1);
    assert_true(tensor_count(2, (int64_t[]){46340, 46340}, &n));
    assert_false(tensor_count(2, (int64_t[]){65536, 32768}, &n));
    assert_false(tensor_count(3, (int64_t[]){INT64_MAX, INT64_MAX, 2}, &n));
    assert_true(tensor_count(3, (int64_t[]){INT64_MAX, INT64_MAX, 0}, &n) && n == 0);
    assert_false(tensor_count(2, (int64_t[]){0, -1}, &n));
}

static void test_uses(void **state) {
    Module *m = *state;
    Graph *g = m->graph = graph_new(m, STR("g")), *body = graph_new(m, STR("b"));
    Value *x = graph_add_input(g, STR("x"), TYPE_UNKNOWN);
    Node *n = node_new(g, STR_NONE, STR("Add"), 2, 1),
         *inner = node_new(body, STR(""), STR("Neg"), 1, 1);
    n->in[0] = n->in[1] = inner->in[0] = x;
    Value *y = node_add_output(n, 0, STR("y"), TYPE_UNKNOWN);
    graph_append(g, n);
    graph_append(body, inner);
    graph_add_output(body, x);
    graph_add_output(g, y);
    Graph *graphs[] = {body};
    Attr attr = {.name = STR("g"), .kind = ATTR_GRAPH, .n = 1, .v.g = graphs};
    n->attrs = &attr;
    n->n_attrs = 1;
    const Use *uses;
    Uses *u = uses_new(m);
    assert_int_equal(uses_of(u, x, &uses), 4);
    assert_ptr_equal(uses[1].node, n);
    assert_int_equal(uses[1].index, 1);
    assert_int_equal(uses_of(u, y, &uses), 1);
    assert_null(uses[0].node);
    Value *late = graph_add_input(g, STR("late"), TYPE_UNKNOWN);
    assert_int_equal(uses_of(u, late, &uses), 0);
    value_replace(m, u, x, late);
    assert_ptr_equal(inner->in[0], late);
    assert_ptr_equal(body->out[0], late);
    value_replace(m, NULL, late, x);
    assert_int_equal(uses_of(uses_new(m), x, &uses), 4);
}

static void test_node_list(void **state) {
    Module *m = *state;
    Graph *g = graph_new(m, STR("g"));
    Node *n[3];
    for (int i = 0; i < 3; i++)
        n[i] = node_new(g, STR(""), STR("Op"), 0, 0);
    graph_append(g, n[1]);
    node_insert_before(n[1], n[0]);
    node_insert_after(n[1], n[2]);
    assert_true(g->first == n[0] && g->last == n[2] && n[0]->next == n[1]);
    node_remove(n[1]);
    assert_true(n[0]->next == n[2] && n[2]->prev == n[0]);
    node_remove(n[0]);
    node_remove(n[2]);
    assert_null(g->first);
    assert_null(g->last);
    node_set_int(n[0], "axis", 3);
    node_set_ints(n[0], "pads", (int64_t[]){1, 2}, 2);
    node_set_int(n[0], "axis", -1);
    assert_int_equal(n[0]->n_attrs, 2);
    assert_int_equal(node_attr(n[0], "axis")->v.i[0], -1);
    node_drop_attr(n[0], "axis");
    assert_null(node_attr(n[0], "axis"));
    assert_int_equal(node_attr(n[0], "pads")->v.i[1], 2);
    assert_true(node_is_in(n[0], "ai.onnx", "Op") && !node_is(n[0], "O"));
}

static void test_unique_names(void **state) {
    Module *m = *state;
    m->graph = graph_new(m, STR("g"));
    graph_add_input(m->graph, STR("x"), TYPE_UNKNOWN);
    graph_add_input(m->graph, STR("x_1"), TYPE_UNKNOWN);
    UniqueNames *u = unique_names_new(m);
    assert_true(str_is(unique_name(u, STR("y")), "y"));
    assert_true(str_is(unique_name(u, STR("x")), "x_2"));
    assert_true(str_is(unique_name(u, STR("x")), "x_3"));
    assert_true(str_is(unique_name(u, STR("y")), "y_1"));
}

static void test_opsets(void **state) {
    Module *m = *state;
    module_set_opset(m, STR("ai.onnx"), 13);
    module_set_opset(m, STR(""), 21);
    assert_int_equal(m->n_imports, 1);
    assert_int_equal(module_opset(m, STR_NONE), 21);
    assert_int_equal(module_opset(m, STR("com.microsoft")), 0);
}

static void test_wire(void **state) {
    Arena *a = ((Module *)*state)->arena;
    Buf b = buf_new(a);
    wire_put_number(&b, 3, UINT64_MAX);
    wire_put_bytes(&b, EXTRA_PLACES, STR("abc"));
    Str bytes = buf_as_str(&b);
    WireField f;
    assert_true(extra_find(bytes, 3, &f) && f.value == UINT64_MAX);
    assert_true(extra_find(bytes, EXTRA_PLACES, &f) && str_is(f.payload, "abc"));
    assert_false(extra_find(bytes, 4, &f));
    for (size_t n = 0; n < bytes.n; n++)
        assert_int_equal(wire_valid((Str){bytes.s, n}), n == 0 || n == 11);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, make_module, free_module)
    const struct CMUnitTest tests[] = {
        T(test_elements),        T(test_types_print),   T(test_quants_print), T(test_quants_equal),
        T(test_quant_bounds),    T(test_quant_of_real), T(test_quant_floats), T(test_quant_index),
        T(test_packed_integers), T(test_small_floats),  T(test_tensor_count), T(test_uses),
        T(test_node_list),       T(test_unique_names),  T(test_opsets),       T(test_wire),
    };
#undef T
    return cmocka_run_group_tests(tests, NULL, NULL);
}
