#include "passes/target/tensorrt.h"

static const char *refusal(const Value *v, const Quant *q) {
    if (q->kind != QUANT_PARAMS || q->storage != ELEM_INT8 || q->expressed != ELEM_FLOAT)
        return "TensorRT quantizes float to int8";
    if (!quant_zp_all_zero(q))
        return "TensorRT has no zero points but 0";
    if (v->kind != VALUE_CONST && !quant_is_per_tensor(q))
        return "in TensorRT an activation has one scale";
    return q->n_axes > 1 || quant_is_blocked(q) ? "TensorRT's int8 weights are not in blocks"
                                                : NULL;
}

typedef struct Check {
    Diags *d;
    bool ok;
} Check;

static void check_value(Value *v, void *ctx) {
    Check *c = ctx;
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    const char *why = q ? refusal(v, q) : NULL;
    if (why)
        c->ok =
            diag_error(c->d, v->loc, "'%s' is quantized to %s%s%s: %s", diag_name(c->d, v->name),
                       elem_name(q->storage), q->n_axes ? ", scales along an axis" : "",
                       quant_zp_all_zero(q) ? "" : ", zero point not 0", why);
}

bool tensorrt_check(Module *m, PassContext *c) {
    Check check = {c->d, true};
    module_each_value(m, check_value, &check);
    return check.ok;
}

/* ---- the calibration cache ---- */

typedef struct Table {
    Buf text;
    Diags *d;
} Table;

static void add_value(Value *v, void *ctx) {
    Table *t = ctx;
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    if (!q || v->kind == VALUE_CONST)
        return;
    const char *why = refusal(v, q);
    bool line = memchr(v->name.s, '\n', v->name.n) || memchr(v->name.s, '\r', v->name.n);
    if (why || line) {
        diag_warning(t->d, v->loc, "'%s' is not in the calibration table: %s",
                     diag_name(t->d, v->name), why ? why : "its name has several lines");
        return;
    }
    float scale = quant_scale(q, 0);
    uint32_t bits;
    memcpy(&bits, &scale, sizeof bits);
    buf_fmt(&t->text, STR_FMT ": %08x\n", STR_ARG(v->name), (unsigned)bits);
}

Str tensorrt_calib_table(Module *m, Diags *d) {
    Table t = {buf_new(m->arena), d};
    buf_fmt(&t.text, "TRT-8601-EntropyCalibration2\n");
    module_each_value(m, add_value, &t);
    return buf_as_str(&t.text);
}
