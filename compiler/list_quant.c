/* qxc list quant MODEL: what is quantized, and under which of the four schemas. */
#include "compiler/session.h"

static const char *schema_of(const Quant *q) {
    switch (q->kind) {
    case QUANT_UNKNOWN: return "unknown";
    case QUANT_DYNAMIC: return "dynamic";
    default: return quant_schema(q);
    }
}

static const char *grain_of(const Quant *q) {
    return quant_is_blocked(q) ? "blocks" : quant_is_per_tensor(q) ? "tensor" : "axis";
}

static const char *form_of(Type t) {
    return !t.tilde ? "typed" : elem_is_float(t.elem) ? "float ~" : "int ~";
}

static void list_value(Value *v, void *ctx) {
    Diags *d = ctx;
    const Quant *q = v->type.quant;
    if (v->type.kind != TYPE_TENSOR || !q)
        return;
    Buf storage = buf_new(v->graph->module->arena);
    if (q->storage == ELEM_UNDEFINED)
        buf_byte(&storage, '?');
    else
        buf_fmt(&storage, "%sq", elem_name(q->storage));
    printf("%-15s  %-25s  %-6s  %-8s  %s\n", buf_as_str(&storage).s, schema_of(q), grain_of(q),
           form_of(v->type), diag_name(d, v->name));
}

ExitCode cmd_list_quant(Session *s) {
    ExitCode code;
    if (s->o.inputs.n != 2) {
        diag_error(s->d, LOC_NONE, "list quant wants a model: qxc list quant model.qir");
        return EXIT_USAGE;
    }
    Module *m = session_read(s, 1, &code);
    if (!m)
        return code;
    Job j;
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    if (!job_raise(&j, m))
        return EXIT_WRONG;
    puts("storage          schema                     for     as        value");
    module_each_value(m, list_value, s->d);
    return EXIT_DONE;
}
