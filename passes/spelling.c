/* What the `onnx` lines of a value say. See spelling.h. */
#include "passes/spelling.h"

const Attr *said(const Node *n, const char *key) {
    const Attr *a = node_attr(n, key);
    return a && a->n ? a : NULL;
}

Str said_name(const Node *n, const char *key, Str none) {
    const Attr *a = said(n, key);
    if (a && a->kind == ATTR_TENSOR)
        return a->v.t[0]->name;
    return a && a->kind == ATTR_STRING ? a->v.s[0] : none;
}

int64_t said_int(const Node *n, const char *key, int64_t none) {
    const Attr *a = said(n, key);
    return a && a->kind == ATTR_INT ? a->v.i[0] : none;
}

bool notes_q(const Node *n) {
    return node_conversion(n) == CONVERT_QUANTIZE;
}

bool notes_dq(const Node *n) {
    return node_conversion(n) == CONVERT_DEQUANTIZE;
}

bool spelled_plain(const Value *v, const char *word) {
    for (const Node *n = v->onnx; n; n = n->next)
        if (str_is(n->op, word))
            return true;
    return false;
}
