#include "compiler/calib_table.h"

typedef struct Table {
    const TargetPage *target;
    Buf text;
    Diags *d;
} Table;

static void add_value(Value *v, void *ctx) {
    Table *t = ctx;
    const Quant *q = v->type.kind == TYPE_TENSOR ? v->type.quant : NULL;
    if (!q || v->kind == VALUE_CONST)
        return;
    const char *why = target_refuses_quant(t->target, v);
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

Str calib_table(const Job *j, Module *m) {
    Table t = {j->ctx.target, buf_new(m->arena), j->d};
    buf_fmt(&t.text, "TRT-8601-EntropyCalibration2\n");
    module_each_value(m, add_value, &t);
    return buf_as_str(&t.text);
}
