/* See dynamic_form.h. */
#include "passes/dynamic_form.h"

#include <stdlib.h>

FormLayout form_layout(const DynamicForm *f) {
    FormLayout l = {.n_operands = 0};
    for (int i = 0; i < FORM_OPERANDS; i++)
        l.value[i] = l.scale[i] = l.zp[i] = -1;
    for (const char *p = f->operands; *p;) {
        char *end;
        size_t i = (size_t)strtoul(p, &end, 10);
        int *to = *end == 's' ? l.scale : *end == 'z' ? l.zp : l.value;
        to[i] = (int)l.n_operands++;
        p = end + strcspn(end, " ");
        p += *p == ' ';
    }
    return l;
}

const OpDef *form_find(const Node *n) {
    if (!str_is(n->domain, "com.microsoft"))
        return NULL;
    for (size_t i = 0; i < op_count(); i++) {
        const OpDef *op = op_at(i);
        if (op->dynamic.op && str_is(n->op, op->dynamic.op))
            return op;
    }
    return NULL;
}

bool form_is_weight(const DynamicForm *f, size_t i) {
    return i < FORM_OPERANDS && (f->weights >> i & 1);
}
