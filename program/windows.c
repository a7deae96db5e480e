/* See program/windows.h. */
#include "program/windows.h"

int32_t *call_field(const Call *c, const void *params, const char *name) {
    const KernelField *f = kernel_field(c->kernel, name);
    return f && f->kind == KF_I32 ? kernel_param(c->kernel, params, name) : NULL;
}

int32_t call_get(const Call *c, const char *name, int32_t otherwise) {
    const int32_t *at = call_field(c, c->params, name);
    return at ? *at : otherwise;
}

/* The row in which the window of an output row begins, and the one behind its end. */
static int64_t top_of(const Call *c, int32_t row) {
    return (int64_t)row * call_get(c, "sh", 1) - call_get(c, "pt", 0);
}

static int64_t end_of(const Call *c, int32_t row) {
    return top_of(c, row) + (int64_t)(call_get(c, "kh", 1) - 1) * call_get(c, "dh", 1) + 1;
}

bool windows_reach(const Call *c, Rows out, Rows *in) {
    int32_t ih = call_get(c, "ih", 0);
    int64_t top = top_of(c, out.from), end = end_of(c, out.to - 1);
    *in = (Rows){(int32_t)(top > 0 ? top : 0), (int32_t)(end < ih ? end : ih)};
    return in->from < in->to;
}

/* Of the padding below, as much as the windows reach. */
void windows_take(const Call *c, const void *params, Rows out, Rows in) {
    int32_t most = call_get(c, "ih", 0) + call_get(c, "pb", 0) - in.to;
    int64_t below = end_of(c, out.to - 1) - in.to;
    *call_field(c, params, "ih") = in.to - in.from;
    *call_field(c, params, "oh") = out.to - out.from;
    *call_field(c, params, "pt") = (int32_t)(in.from - top_of(c, out.from));
    if (call_field(c, params, "pb"))
        *call_field(c, params, "pb") = below < most ? (int32_t)below : most;
}
