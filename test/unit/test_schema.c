/* The operator table: order, lookup by opset, and facts that the passes lean on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/onnx_schema.h"

/* TensorProto.DataType */
enum { FLOAT = 1, UINT8, INT8, UINT16, INT16, INT32, INT64, INT4 = 22 };

static bool input_allows(const char *op, int opset, int index, int type) {
    const OnnxSchema *schema = onnx_schema("", op, opset);
    assert_non_null(schema);
    return onnx_schema_allows(schema, false, index, type);
}

static void test_rows_are_ordered(void **state) {
    (void)state;
    assert_true(onnx_schema_count() > 600);
    assert_null(onnx_schema_at(onnx_schema_count()));
    for (size_t i = 1; i < onnx_schema_count(); i++) {
        const OnnxSchema *a = onnx_schema_at(i - 1), *b = onnx_schema_at(i);
        if ((b->flags & SCHEMA_ORT) && !(a->flags & SCHEMA_ORT))
            continue; /* they come behind all others, in an order of their own */
        int c = strcmp(a->domain, b->domain);
        if (c == 0)
            c = strcmp(a->name, b->name);
        if (c == 0)
            c = a->since - b->since;
        if (c >= 0)
            fail_msg("%s %s %d is out of order", b->domain, b->name, b->since);
    }
}

static void test_finds_every_row(void **state) {
    (void)state;
    for (size_t i = 0; i < onnx_schema_count(); i++) {
        const OnnxSchema *row = onnx_schema_at(i);
        assert_ptr_equal(onnx_schema(row->domain, row->name, row->since), row);
        assert_ptr_not_equal(onnx_schema(row->domain, row->name, row->since - 1), row);
        assert_true(row->since <= onnx_schema_newest(str_from(row->domain)));
    }
}

static void test_lookup(void **state) {
    (void)state;
    assert_int_equal(onnx_schema("", "Add", 13)->since, 13);
    assert_int_equal(onnx_schema("", "Add", 12)->since, 7);
    assert_int_equal(onnx_schema("", "Add", 1000)->since, 14);
    assert_ptr_equal(onnx_schema("ai.onnx", "Add", 14), onnx_schema("", "Add", 14));
    assert_null(onnx_schema("", "Add", 0));
    assert_null(onnx_schema("", "QLinearConv", 9));
    assert_null(onnx_schema("", "AddX", 14));
    assert_null(onnx_schema("", "", 14));
    assert_null(onnx_schema("", "A", 14));
    assert_null(onnx_schema("zzz", "Zzz", 14));
    assert_null(onnx_schema("com.microsoft", "Add", 14));
    assert_null(onnx_schema_find(STR(""), STR("Add\0x"), 14));
    assert_non_null(onnx_schema("ai.onnx.ml", "Scaler", 1));
}

static void test_deprecated_differs_from_absent(void **state) {
    (void)state;
    assert_int_equal(onnx_schema("", "Upsample", 9)->flags, 0);
    const OnnxSchema *gone = onnx_schema("", "Upsample", 10);
    assert_non_null(gone);
    assert_int_equal(gone->flags, SCHEMA_DEPRECATED);
    assert_true(onnx_schema("", "RandomNormal", 1)->flags & SCHEMA_NONDETERMINISTIC);
}

static void test_native_integer_types(void **state) {
    (void)state;
    assert_false(input_allows("Add", 13, 0, INT8));
    assert_true(input_allows("Add", 14, 0, INT8));
    assert_true(input_allows("Add", 13, 0, INT32));
    assert_false(input_allows("MaxPool", 11, 0, INT8));
    assert_true(input_allows("MaxPool", 12, 0, INT8));
    assert_true(input_allows("MaxPool", 12, 0, UINT8));
    assert_false(input_allows("MaxPool", 12, 0, INT16));
    assert_false(input_allows("Relu", 13, 0, INT8));
    assert_true(input_allows("Relu", 14, 0, INT8));
    assert_false(input_allows("Relu", 14, 0, UINT8));
    assert_false(input_allows("QuantizeLinear", 19, 2, INT16));
    assert_true(input_allows("QuantizeLinear", 21, 2, INT16));
    assert_true(input_allows("DequantizeLinear", 21, 0, INT4));
    assert_false(input_allows("Conv", 28, 0, INT8));
}

static void test_types_out_of_range(void **state) {
    (void)state;
    assert_false(input_allows("Identity", 28, 0, 0));
    assert_false(input_allows("Identity", 28, 0, FLOAT - 32));
    assert_false(input_allows("Identity", 28, 0, 29));
    assert_false(input_allows("Identity", 28, 0, FLOAT + 32));
    assert_true(input_allows("Identity", 28, 0, FLOAT));
    assert_false(input_allows("Identity", 28, 1, FLOAT));
    assert_false(input_allows("Identity", 28, -1, FLOAT));
}

static void test_qlinear_conv(void **state) {
    (void)state;
    const OnnxSchema *conv = onnx_schema("", "QLinearConv", 13);
    static const int bytes[] = {0, 2, 3, 5, 7}, floats[] = {1, 4, 6};
    for (int i = 0; i < 5; i++) {
        assert_true(onnx_schema_allows(conv, false, bytes[i], INT8));
        assert_true(onnx_schema_allows(conv, false, bytes[i], UINT8));
        assert_false(onnx_schema_allows(conv, false, bytes[i], INT16));
    }
    for (int i = 0; i < 3; i++) {
        assert_true(onnx_schema_allows(conv, false, floats[i], FLOAT));
        assert_false(onnx_schema_allows(conv, false, floats[i], INT8));
    }
    assert_true(onnx_schema_allows(conv, false, 8, INT32));
    assert_false(onnx_schema_allows(conv, false, 8, INT8));
    assert_true(onnx_schema_allows(conv, true, 0, UINT8));
    assert_string_equal(onnx_schema_param(conv, false, 0)->type_var, "T1");
    assert_string_equal(onnx_schema_param(conv, false, 2)->type_var, "T1");
    assert_string_equal(onnx_schema_param(conv, false, 3)->type_var, "T2");
    assert_int_equal(onnx_schema_min(conv, false), 8);
    assert_int_equal(onnx_schema_max(conv, false), 9);
}

static void test_arity(void **state) {
    (void)state;
    const OnnxSchema *concat = onnx_schema("", "Concat", 13);
    assert_int_equal(onnx_schema_min(concat, false), 1);
    assert_int_equal(onnx_schema_max(concat, false), INT_MAX);
    assert_ptr_equal(onnx_schema_param(concat, false, 99), concat->inputs);
    assert_null(onnx_schema_param(concat, true, 1));
    assert_null(onnx_schema_param(concat, false, -1));
    const OnnxSchema *constant = onnx_schema("", "Constant", 13);
    assert_int_equal(onnx_schema_max(constant, false), 0);
    assert_null(onnx_schema_param(constant, false, 0));
    const OnnxSchema *add = onnx_schema("com.microsoft", "QLinearAdd", 1);
    assert_int_equal(onnx_schema_min(add, false), 7);
    assert_int_equal(onnx_schema_max(add, false), 8);
    const OnnxSchema *qconcat = onnx_schema("com.microsoft", "QLinearConcat", 1);
    assert_int_equal(onnx_schema_min(qconcat, false), 3);
    assert_false(onnx_schema_param(qconcat, false, 2)->homogeneous);
    assert_true(onnx_schema_allows(qconcat, false, 3, FLOAT));
}

static void test_attributes(void **state) {
    (void)state;
    const OnnxSchema *gemm = onnx_schema("", "Gemm", 13);
    const SchemaAttr *alpha = onnx_schema_attr(gemm, STR("alpha"));
    assert_int_equal(alpha->type, SCHEMA_FLOAT);
    assert_int_equal(alpha->presence, SCHEMA_ATTR_DEFAULT);
    assert_true(alpha->value.f == 1.0f);
    assert_null(onnx_schema_attr(gemm, STR("gamma")));
    assert_int_equal(onnx_schema_attr(onnx_schema("", "Softmax", 11), STR("axis"))->value.i, 1);
    assert_int_equal(onnx_schema_attr(onnx_schema("", "Softmax", 13), STR("axis"))->value.i, -1);
    assert_int_equal(onnx_schema_attr(onnx_schema("", "Concat", 13), STR("axis"))->presence,
                     SCHEMA_ATTR_REQUIRED);
    const OnnxSchema *conv = onnx_schema("", "Conv", 11);
    assert_int_equal(onnx_schema_attr(conv, STR("pads"))->presence, SCHEMA_ATTR_OPTIONAL);
    assert_int_equal(onnx_schema_attr(conv, STR("pads"))->type, SCHEMA_INTS);
    assert_string_equal(onnx_schema_attr(conv, STR("auto_pad"))->value.s, "NOTSET");
    const OnnxSchema *norm = onnx_schema("", "MeanVarianceNormalization", 13);
    const SchemaAttr *axes = onnx_schema_attr(norm, STR("axes"));
    assert_int_equal(axes->n, 3);
    assert_int_equal(axes->value.ints[2], 3);
    const SchemaAttr *leak =
        onnx_schema_attr(onnx_schema("com.microsoft", "QLinearLeakyRelu", 1), STR("alpha"));
    assert_true(leak->value.f == 0.01f);
}

static void test_newest(void **state) {
    (void)state;
    assert_int_equal(onnx_schema_newest(STR("")), 28);
    assert_int_equal(onnx_schema_newest(STR("ai.onnx")), 28);
    assert_int_equal(onnx_schema_newest(STR("ai.onnx.ml")), 5);
    assert_int_equal(onnx_schema_newest(STR("com.microsoft")), 1);
    assert_int_equal(onnx_schema_newest(STR("com.example")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_ordered),
        cmocka_unit_test(test_finds_every_row),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_deprecated_differs_from_absent),
        cmocka_unit_test(test_native_integer_types),
        cmocka_unit_test(test_types_out_of_range),
        cmocka_unit_test(test_qlinear_conv),
        cmocka_unit_test(test_arity),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_newest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
