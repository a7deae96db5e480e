/* ir/ops: the registry has no holes, windows, QOperator views, attributes, inference */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ir/ops/qop.h"
#include "passes/pass.h"

typedef struct Fixture {
    Arena *arena;
    Diags *d;
    Module *m;
    Graph *g;
} Fixture;

static int setup(void **state) {
    Arena *a = arena_new(0, NULL);
    Fixture *f = NEW(a, Fixture);
    f->arena = a;
    f->d = diags_new(a, NULL, false);
    diags_record(f->d, true);
    f->m = module_new(a, f->d);
    f->m->graph = f->g = graph_new(f->m, STR("g"));
    module_set_opset(f->m, STR(""), 21);
    module_set_opset(f->m, STR("com.microsoft"), 1);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    module_free(((Fixture *)*state)->m);
    return 0;
}

static const char *last_error(const Fixture *f) {
    const DiagRecord *r;
    size_t n = diags_records(f->d, &r);
    for (size_t i = n; i-- > 0;)
        if (r[i].severity == DIAG_ERROR)
            return r[i].text;
    return "";
}

static const char *last_note(const Fixture *f) {
    const DiagRecord *r;
    size_t n = diags_records(f->d, &r);
    return n && r[n - 1].severity == DIAG_NOTE ? r[n - 1].text : "";
}

static Value *input(Fixture *f, const char *name, ElemType e, int rank, const int64_t *dims) {
    return graph_add_input(f->g, str_from(name), type_fixed(f->arena, e, rank, dims));
}

static Value *constant(Fixture *f, const char *name, ElemType e, int rank, const int64_t *dims,
                       const void *data) {
    Tensor *t = tensor_of(f->arena, e, rank, dims, data);
    return graph_add_const(f->g, str_from(name), type_fixed(f->arena, e, rank, dims), t);
}

static Node *node(Fixture *f, const char *domain, const char *op, size_t n, Value **in) {
    Node *at = node_new(f->g, str_from(domain), str_from(op), n, 1);
    for (size_t i = 0; i < n; i++)
        at->in[i] = in[i];
    Str name = arena_strf(f->arena, "y%u", at->id);
    graph_append(f->g, at);
    node_add_output(at, 0, name, TYPE_UNKNOWN);
    return at;
}

static void assert_type(Fixture *f, const Value *v, const char *text) {
    assert_string_equal(type_text(f->arena, v->type), text);
}

/* ---- the registry ---- */

/* Every version of an operator in ONNX's schema. */
static void each_schema(const OpDef *op, void (*fn)(const OpDef *, const OnnxSchema *)) {
    for (size_t i = 0; i < onnx_schema_count(); i++) {
        const OnnxSchema *s = onnx_schema_at(i);
        if (!strcmp(s->name, op->name) && !strcmp(s->domain, op->domain))
            fn(op, s);
    }
}

/* The struct's field must have the type that the schema gives the attribute. */
static void check_kinds(const OpDef *op, const OnnxSchema *s) {
    const OnnxSchema *oldest = onnx_schema(op->domain, op->name, 7);
    if (oldest && s->since < oldest->since)
        return; /* qxc upgrades from opset 7 on */
    for (int i = 0; i < s->n_attrs; i++) {
        const AttrSpec *a = op_attr(op, str_from(s->attrs[i].name));
        if (a && (uint8_t)a->kind != s->attrs[i].type)
            fail_msg("%s-%d: attribute %s has another kind in the schema", op->name, s->since,
                     s->attrs[i].name);
    }
}

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < op_count(); i++) {
        const OpDef *op = op_at(i);
        const OpDef *before = i ? op_at(i - 1) : NULL;
        int order = before ? strcmp(before->name, op->name) : -1;
        if (order > 0 || (order == 0 && strcmp(before->domain, op->domain) >= 0))
            fail_msg("ops.def: %s does not come after %s", op->name, before->name);
        assert_ptr_equal(op_find(str_from(op->domain), str_from(op->name)), op);
        if (!op->infer || !op->bind)
            fail_msg("%s lacks infer or bind", op->name);
        assert_true(!op->attrs == !op->attrs_size || !op->attrs[0].name);
        if (op->quant.kind != QUANT_NEVER && !op->quant.data)
            fail_msg("%s has a quantization rule without data operands", op->name);
        if (op->quant.kind == QUANT_MAC && (!op->quant.mac.weight || !op->quant.mac.weight_axis))
            fail_msg("%s lacks its weight", op->name);
        each_schema(op, check_kinds);
        bool foreign = !strcmp(op->domain, "qxc") || !strncmp(op->domain, "qonnx.", 6);
        if (!foreign &&
            !onnx_schema(op->domain, op->name, onnx_schema_newest(str_from(op->domain))))
            fail_msg("ONNX has no %s", op->name);
    }
    assert_null(op_find(STR(""), STR("NoSuchOperator")));
    assert_null(op_find(STR("com.microsoft"), STR("Conv")));
    assert_ptr_equal(op_find(STR("ai.onnx"), STR("Conv")), op_find(STR(""), STR("Conv")));
}

/* All attributes of the newest schema are decoded, but for those named here. */
static void test_attributes_complete(void **state) {
    (void)state;
    static const char *const passed_over[] = {"sparse_value", "value_int",     "value_float",
                                              "value_string", "value_strings", "round_mode"};
    for (size_t i = 0; i < op_count(); i++) {
        const OpDef *op = op_at(i);
        const OnnxSchema *s = onnx_schema(op->domain, op->name, 21);
        for (int k = 0; s && k < s->n_attrs; k++) {
            bool known = op_attr(op, str_from(s->attrs[k].name)) != NULL;
            for (size_t j = 0; j < sizeof passed_over / sizeof *passed_over; j++)
                known = known || !strcmp(s->attrs[k].name, passed_over[j]);
            if (!known)
                fail_msg("%s does not decode attribute %s", op->name, s->attrs[k].name);
        }
    }
}

/* The form's operands are those of the QOperator's schema, in number, and data types are integers.
 */
static void test_qop_forms(void **state) {
    Fixture *f = *state;
    for (size_t i = 0; i < op_count(); i++) {
        const QopForm *q = &op_at(i)->qop;
        if (!q->op)
            continue;
        const OpDef *first = qop_find(str_from(q->domain), str_from(q->op));
        assert_non_null(first);
        const OnnxSchema *s =
            onnx_schema(q->domain, q->op, onnx_schema_newest(str_from(q->domain)));
        if (!s)
            fail_msg("no schema for %s", q->op);
        int most = onnx_schema_max(s, false);
        QopLayout l;
        if (most == INT_MAX) {
            assert_true(qop_layout(q, 3, &l, f->arena));
            continue;
        }
        size_t n = 1;
        while (n < 8 && qop_layout(q, n + 1, &l, f->arena))
            n++;
        assert_true(qop_layout(q, n, &l, f->arena));
        if (l.n_operands != (size_t)most)
            fail_msg("%s: the form has %zu operands, the schema %d", q->op, l.n_operands, most);
        for (size_t k = 0; k < n; k++) {
            assert_true(onnx_schema_allows(s, false, l.data[k], ELEM_UINT8) ||
                        onnx_schema_allows(s, false, l.data[k], ELEM_INT32) ||
                        (l.scale[k] < 0 && onnx_schema_allows(s, false, l.data[k], ELEM_BOOL)));
            assert_true(l.scale[k] < 0 || onnx_schema_allows(s, false, l.scale[k], ELEM_FLOAT));
            assert_true(l.zp[k] < 0 || onnx_schema_allows(s, false, l.zp[k], ELEM_UINT8));
        }
        assert_true(onnx_schema_allows(s, false, l.y_scale, ELEM_FLOAT));
        assert_true(onnx_schema_allows(s, false, l.y_zp, ELEM_UINT8));
    }
}

/* ---- windows ---- */

typedef struct WindowCase {
    const char *auto_pad;
    int64_t in, kernel, stride, dilation, pad_begin, pad_end, ceil;
    int64_t out, begin, end; /* expected; out -1: an error */
} WindowCase;

static const WindowCase window_cases[] = {
    {"NOTSET", 8, 3, 1, 1, 1, 1, 0, 8, 1, 1},
    {"NOTSET", 8, 3, 2, 1, 0, 0, 0, 3, 0, 0},
    {"NOTSET", 7, 3, 1, 2, 0, 0, 0, 3, 0, 0},
    {"NOTSET", 3, 3, 1, 1, 0, 0, 0, 1, 0, 0},
    {"NOTSET", 2, 3, 1, 1, 0, 0, 0, -1, 0, 0}, /* larger than the input */
    {"NOTSET", 2, 3, 1, 1, 1, 0, 0, 1, 1, 0},
    {"NOTSET", 4, 3, 2, 1, 0, 0, 1, 2, 0, 0}, /* the last window overhangs */
    {"NOTSET", 5, 3, 2, 1, 0, 0, 1, 2, 0, 0}, /* nothing left over */
    {"NOTSET", 2, 1, 2, 1, 0, 0, 1, 1, 0, 0}, /* it would start behind the input */
    {"NOTSET", 3, 2, 2, 1, 1, 1, 1, 2, 1, 1}, /* it would start in the end padding */
    {"NOTSET", 4, 2, 2, 1, 1, 1, 1, 3, 1, 1},
    {"VALID", 8, 3, 2, 1, 5, 5, 0, 3, 0, 0}, /* pads do not count */
    {"SAME_UPPER", 5, 2, 1, 1, 0, 0, 0, 5, 0, 1},
    {"SAME_LOWER", 5, 2, 1, 1, 0, 0, 0, 5, 1, 0},
    {"SAME_UPPER", 5, 3, 2, 1, 0, 0, 0, 3, 1, 1},
    {"SAME_UPPER", 6, 3, 2, 1, 0, 0, 0, 3, 0, 1},
    {"SAME_LOWER", 6, 3, 2, 1, 0, 0, 0, 3, 1, 0},
    {"SAME_UPPER", 6, 1, 2, 1, 0, 0, 0, 3, 0, 0}, /* less than nothing to pad */
    {"SAME_UPPER", 6, 3, 1, 2, 0, 0, 0, 6, 2, 2},
    {"NOTSET", 6, 3, 0, 1, 0, 0, 0, -1, 0, 0},
    {"NOTSET", 6, 0, 1, 1, 0, 0, 0, -1, 0, 0},
    {"NOTSET", 6, 3, 1, 0, 0, 0, 0, -1, 0, 0},
    {"NOTSET", 6, 3, 1, 1, -1, 0, 0, -1, 0, 0},
};

static void test_windows(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "", "MaxPool", 0, NULL);
    OpCtx c = op_ctx(n, f->d);
    for (size_t i = 0; i < sizeof window_cases / sizeof *window_cases; i++) {
        const WindowCase *t = &window_cases[i];
        int64_t dims[] = {1, 1, t->in}, pads[] = {t->pad_begin, t->pad_end};
        WindowAttrs a = {.auto_pad = str_from(t->auto_pad),
                         .kernel_shape = {&t->kernel, 1},
                         .strides = {&t->stride, 1},
                         .dilations = {&t->dilation, 1},
                         .pads = {pads, 2},
                         .ceil_mode = t->ceil};
        Window w;
        bool ok = op_window(&c, &a, type_fixed(f->arena, ELEM_FLOAT, 3, dims), NULL, &w);
        if (ok != (t->out >= 0))
            fail_msg("window %zu: %s", i, ok ? "accepted" : last_error(f));
        if (ok &&
            (w.out[0].value != t->out || w.pad_begin[0] != t->begin || w.pad_end[0] != t->end))
            fail_msg("window %zu: out %d, pads %d %d", i, (int)w.out[0].value, (int)w.pad_begin[0],
                     (int)w.pad_end[0]);
    }
}

static void test_window_unknown(void **state) {
    Fixture *f = *state;
    OpCtx c = op_ctx(node(f, "", "MaxPool", 0, NULL), f->d);
    int64_t kernel = 3;
    Dim dims[] = {dim_of(1), dim_of(1), dim_unknown()};
    WindowAttrs a = {.auto_pad = STR("SAME_UPPER"), .kernel_shape = {&kernel, 1}};
    Window w;
    assert_true(op_window(&c, &a, type_tensor(ELEM_FLOAT, 3, dims), NULL, &w));
    assert_int_equal(w.out[0].value, -1);
}

/* ---- attributes ---- */

static void test_unknown_attribute(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "", "Gemm", 0, NULL);
    node_set_int(n, "transBB", 1);
    assert_false(op_resolve(n, f->d));
    assert_string_equal(last_error(f), "Gemm has no attribute 'transBB' at opset 21");
    assert_non_null(strstr(last_note(f), "transB"));
}

static void test_wrong_kind(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "", "Gemm", 0, NULL);
    node_set_int(n, "alpha", 2);
    assert_false(op_resolve(n, f->d));
    assert_string_equal(last_error(f), "attribute 'alpha' of Gemm must be a float, not an integer");
    assert_non_null(strstr(last_note(f), "2.0"));
}

static void test_missing_attribute(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "", "Concat", 0, NULL);
    assert_false(op_resolve(n, f->d));
    assert_string_equal(last_error(f), "Concat needs attribute 'axis'");
}

/* Softmax's default axis follows the opset. */
static void test_default_of_opset(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "", "Softmax", 0, NULL);
    assert_true(op_resolve(n, f->d));
    assert_int_equal(*(const int64_t *)n->typed, -1);
    module_set_opset(f->m, STR(""), 12);
    assert_true(op_resolve(n, f->d));
    assert_int_equal(*(const int64_t *)n->typed, 1);
}

static void test_unknown_operator(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "my.domain", "Thing", 0, NULL);
    node_set_int(n, "whatever", 1);
    assert_true(op_resolve(n, f->d));
    assert_null(n->def);
}

/* ---- QOperators ---- */

static const int64_t one_dim[] = {1};

static Value *scalar(Fixture *f, const char *name, ElemType e) {
    return input(f, name, e, 0, one_dim);
}

static void test_qlinear_conv(void **state) {
    Fixture *f = *state;
    int64_t xd[] = {1, 2, 5, 5}, wd[] = {3, 2, 3, 3}, bd[] = {3};
    Value *in[] = {input(f, "x", ELEM_UINT8, 4, xd), scalar(f, "xs", ELEM_FLOAT),
                   scalar(f, "xz", ELEM_UINT8),      input(f, "w", ELEM_INT8, 4, wd),
                   scalar(f, "ws", ELEM_FLOAT),      scalar(f, "wz", ELEM_INT8),
                   scalar(f, "ys", ELEM_FLOAT),      scalar(f, "yz", ELEM_UINT8),
                   input(f, "b", ELEM_INT32, 1, bd)};
    Node *n = node(f, "", "QLinearConv", 9, in);
    assert_true(op_resolve(n, f->d));
    assert_null(n->def);
    const OpDef *op;
    QopView v;
    assert_true(qop_view(n, &op, &v, f->d));
    assert_string_equal(op->name, "Conv");
    assert_int_equal(v.n_in, 3);
    assert_ptr_equal(v.in[0], in[0]);
    assert_ptr_equal(v.scale[0], in[1]);
    assert_ptr_equal(v.zp[0], in[2]);
    assert_ptr_equal(v.in[1], in[3]);
    assert_ptr_equal(v.zp[1], in[5]);
    assert_ptr_equal(v.in[2], in[8]);
    assert_null(v.scale[2]);
    assert_ptr_equal(v.y_scale, in[6]);
    assert_ptr_equal(v.y_zp, in[7]);
    assert_true(module_infer(f->m, f->d));
    assert_type(f, n->out[0], "uint8[1,3,3,3]");
    assert_true(module_verify(f->m, f->d));
    n->n_in = 8; /* without bias */
    assert_true(qop_view(n, &op, &v, f->d));
    assert_int_equal(v.n_in, 2);
    assert_ptr_equal(v.y_zp, in[7]);
    n->n_in = 2;
    assert_true(qop_view(n, &op, &v, f->d)); /* the schema refuses it, not the view */
    assert_false(module_verify(f->m, f->d));
}

static void test_qgemm_float_result(void **state) {
    Fixture *f = *state;
    int64_t ad[] = {2, 4}, bd[] = {3, 4};
    Value *in[] = {input(f, "a", ELEM_UINT8, 2, ad),
                   scalar(f, "as", ELEM_FLOAT),
                   scalar(f, "az", ELEM_UINT8),
                   input(f, "b", ELEM_INT8, 2, bd),
                   scalar(f, "bs", ELEM_FLOAT),
                   scalar(f, "bz", ELEM_INT8),
                   NULL,
                   scalar(f, "ys", ELEM_FLOAT),
                   scalar(f, "yz", ELEM_INT8)};
    Node *n = node(f, "com.microsoft", "QGemm", 9, in);
    node_set_int(n, "transB", 1);
    assert_true(op_resolve(n, f->d));
    const OpDef *op;
    QopView v;
    assert_true(qop_view(n, &op, &v, f->d));
    assert_int_equal(v.n_in, 2);
    assert_ptr_equal(v.y_scale, in[7]);
    assert_int_equal(qop_result_elem(&v), ELEM_INT8);
    n->n_in = 6;
    assert_true(qop_view(n, &op, &v, f->d));
    assert_null(v.y_scale);
    assert_int_equal(qop_result_elem(&v), ELEM_FLOAT);
    assert_true(module_infer(f->m, f->d));
    assert_type(f, n->out[0], "float[2,3]");
}

static void test_qlinear_concat(void **state) {
    Fixture *f = *state;
    int64_t d[] = {1, 2};
    Value *in[] = {scalar(f, "ys", ELEM_FLOAT),    scalar(f, "yz", ELEM_INT8),
                   input(f, "a", ELEM_INT8, 2, d), scalar(f, "as", ELEM_FLOAT),
                   scalar(f, "az", ELEM_INT8),     input(f, "b", ELEM_INT8, 2, d),
                   scalar(f, "bs", ELEM_FLOAT),    scalar(f, "bz", ELEM_INT8)};
    Node *n = node(f, "com.microsoft", "QLinearConcat", 8, in);
    node_set_int(n, "axis", 1);
    assert_true(op_resolve(n, f->d));
    const OpDef *op;
    QopView v;
    assert_true(qop_view(n, &op, &v, f->d));
    assert_int_equal(v.n_in, 2);
    assert_ptr_equal(v.in[1], in[5]);
    assert_ptr_equal(v.scale[1], in[6]);
    assert_ptr_equal(v.y_scale, in[0]);
    assert_true(module_infer(f->m, f->d));
    assert_type(f, n->out[0], "int8[1,4]");
}

static void test_channels_last_is_another_operator(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "com.microsoft", "QLinearAveragePool", 5, (Value *[5]){NULL});
    node_set_int(n, "channels_last", 1);
    assert_null(qop_of(n));
}

/* ---- inference ---- */

static void test_infer_disagrees(void **state) {
    Fixture *f = *state;
    int64_t d[] = {2, 3}, wrong[] = {3, 2};
    Node *n = node(f, "", "Relu", 1, (Value *[]){input(f, "x", ELEM_FLOAT, 2, d)});
    n->out[0]->type = type_fixed(f->arena, ELEM_FLOAT, 2, wrong);
    assert_true(module_resolve(f->m, f->d));
    assert_false(module_infer(f->m, f->d));
    assert_non_null(strstr(last_error(f), "float[3,2]"));
    assert_non_null(strstr(last_error(f), "float[2,3]"));
}

static void test_reshape(void **state) {
    Fixture *f = *state;
    struct {
        int64_t in[3], shape[3];
        int n;
        const char *out;
    } cases[] = {
        {{2, 3, 4}, {-1, 4, 0}, 2, "float[6,4]"},    {{2, 3, 4}, {0, -1, 0}, 2, "float[2,12]"},
        {{2, 3, 4}, {4, 3, 2}, 3, "float[4,3,2]"},   {{2, 3, 4}, {5, -1, 0}, 2, NULL},
        {{2, 3, 4}, {-1, -1, 0}, 2, NULL},           {{2, 3, 4}, {4, 4, 0}, 2, NULL},
        {{2, 0, 4}, {0, 0, -1}, 3, "float[2,0,0]"},  {{-1, 3, 4}, {0, 12, 0}, 2, "float[N,12]"},
        {{-1, 3, 4}, {-1, 12, 0}, 2, "float[N,12]"}, {{-1, 3, 4}, {-1, 6, 0}, 2, "float[?,6]"},
        {{-1, 3, 4}, {0, -1, 0}, 2, "float[N,12]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Value *x = input(f, "x", ELEM_FLOAT, 3, cases[i].in);
        Dim batch[] = {{-1, STR("N"), STR_NONE}, x->type.dims[1], x->type.dims[2]};
        if (cases[i].in[0] < 0)
            x->type.dims = batch;
        Value *s = constant(f, "s", ELEM_INT64, 1, (int64_t[]){cases[i].n}, cases[i].shape);
        Node *n = node(f, "", "Reshape", 2, (Value *[]){x, s});
        assert_true(op_resolve(n, f->d));
        OpCtx c = op_ctx(n, f->d);
        bool ok = n->def->infer(&c);
        if (ok != (cases[i].out != NULL))
            fail_msg("reshape %zu: %s", i, ok ? "accepted" : last_error(f));
        if (ok)
            assert_string_equal(type_text(f->arena, c.out[0]), cases[i].out);
    }
}

static void test_declared_types_stay(void **state) {
    Fixture *f = *state;
    int64_t d[] = {2, 3};
    Node *n = node(f, "", "Relu", 1, (Value *[]){input(f, "x", ELEM_FLOAT, 2, d)});
    Dim dims[] = {{-1, STR("N"), STR_NONE}, dim_of(3)};
    n->out[0]->type = type_tensor(ELEM_FLOAT, 2, dims);
    n->out[0]->declared = true;
    assert_true(module_resolve(f->m, f->d));
    assert_true(module_infer(f->m, f->d));
    assert_type(f, n->out[0], "float[N,3]");
    assert_true(module_refine(f->m, f->d));
    assert_type(f, n->out[0], "float[2,3]");
    assert_int_equal(dims[0].value, -1); /* shared dims are not written to */
}

static void test_axis_moves(void **state) {
    Fixture *f = *state;
    int64_t d[] = {2, 3, 4}, perm[] = {2, 0, 1};
    float scale[] = {0.5f, 0.25f, 2.0f};
    Value *x = input(f, "x", ELEM_FLOAT, 3, d);
    x->type = type_quantized(x->type, quant_per_axis(f->arena, ELEM_INT8, 1, 3, scale, NULL));
    Node *n = node(f, "", "Transpose", 1, &x);
    node_set_ints(n, "perm", perm, 3);
    int64_t shape[] = {8, 3};
    Value *s = constant(f, "s", ELEM_INT64, 1, (int64_t[]){2}, shape);
    Node *r = node(f, "", "Reshape", 2, (Value *[]){n->out[0], s});
    assert_true(module_resolve(f->m, f->d));
    assert_true(module_infer(f->m, f->d));
    assert_int_equal(n->out[0]->type.quant->axis[0], 2);
    assert_int_equal(r->out[0]->type.quant->axis[0], 1);
    assert_true(module_verify(f->m, f->d));
}

/* ---- laws ---- */

static bool infer_says_nothing(OpCtx *c) {
    (void)c;
    return false;
}

static bool verify_says_nothing(const OpCtx *c) {
    (void)c;
    return false;
}

static bool pass_says_nothing(Module *m, PassContext *c) {
    (void)m, (void)c;
    return false;
}

/* Whoever refuses must say why; who forgets is found by name and place. */
static void test_refusals_have_reasons(void **state) {
    Fixture *f = *state;
    Node *n = node(f, "", "Relu", 1, (Value *[]){input(f, "x", ELEM_FLOAT, 1, one_dim)});
    n->name = STR("r1");
    n->loc = (Loc){.source = diags_source(f->d, "m.qir", STR("12345")), .begin = 3, .end = 4};
    assert_true(module_resolve(f->m, f->d));
    OpDef silent = *n->def;
    n->def = &silent;
    silent.infer = infer_says_nothing;
    assert_false(module_infer(f->m, f->d));
    assert_int_equal(diags_errors(f->d), 1);
    assert_non_null(strstr(last_error(f), "node \"r1\" (Relu): refused"));
    silent.infer = op_same_type;
    silent.verify = verify_says_nothing;
    assert_true(module_infer(f->m, f->d));
    assert_false(module_verify(f->m, f->d));
    assert_int_equal(diags_errors(f->d), 2);
    const DiagRecord *r;
    assert_int_equal(diags_records(f->d, &r), 2);
    assert_int_equal(r[0].column, 4);
    assert_int_equal(r[1].column, 4);

    silent = *op_find(STR(""), STR("Relu"));
    PassContext c = {.d = f->d};
    Pass pass = {.name = "dumb", .before = "any", .after = "same", .run = pass_says_nothing};
    assert_false(pass_run(&pass, f->m, &c));
    assert_int_equal(diags_errors(f->d), 3);
    assert_non_null(strstr(last_error(f), "dumb: refused"));
    assert_int_equal(diags_unexplained(f->d), 3);
}

static bool pass_quantizes(Module *m, PassContext *c) {
    (void)c;
    m->graph->in[0]->type.quant = quant_per_tensor(m->arena, ELEM_INT8, 1.0f, 0);
    m->graph->in[0]->type.tilde = true;
    return true;
}

/* A pass that leaves another form than its row says is found by name. */
static void test_passes_leave_their_form(void **state) {
    Fixture *f = *state;
    int64_t d[] = {2};
    Value *x = input(f, "x", ELEM_FLOAT, 1, d);
    node(f, "", "Relu", 1, &x);
    PassContext c = {.d = f->d};
    Pass pass = {.name = "liar", .before = "any", .after = "fake", .run = pass_quantizes};
    assert_true(module_resolve(f->m, f->d));
    assert_true(pass_run(&pass, f->m, &c));
    x->type.quant = NULL;
    x->type.tilde = false;
    pass.after = "same";
    assert_false(pass_run(&pass, f->m, &c));
    assert_non_null(strstr(last_error(f), "pass liar is to leave the any form; 'x' is fake-quant"));
    pass.before = "true";
    assert_false(pass_run(&pass, f->m, &c));
    assert_non_null(strstr(last_error(f), "pass liar takes the true form; 'x' is fake-quant"));
}

static void test_use_before_definition(void **state) {
    Fixture *f = *state;
    int64_t d[] = {2};
    Value *x = input(f, "x", ELEM_FLOAT, 1, d);
    Node *a = node(f, "", "Relu", 1, &x), *b = node(f, "", "Relu", 1, &x);
    assert_true(module_resolve(f->m, f->d));
    assert_true(module_infer(f->m, f->d));
    assert_true(module_verify(f->m, f->d));
    a->in[0] = b->out[0];
    assert_false(module_verify(f->m, f->d));
    assert_non_null(strstr(last_error(f), "before or outside its definition"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(rows),
        T(attributes_complete),
        T(qop_forms),
        T(windows),
        T(window_unknown),
        T(unknown_attribute),
        T(wrong_kind),
        T(missing_attribute),
        T(default_of_opset),
        T(unknown_operator),
        T(qlinear_conv),
        T(qgemm_float_result),
        T(qlinear_concat),
        T(channels_last_is_another_operator),
        T(infer_disagrees),
        T(reshape),
        T(declared_types_stay),
        T(axis_moves),
        T(passes_leave_their_form),
        T(passes_leave_their_form),
        T(use_before_definition),
        T(refusals_have_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
