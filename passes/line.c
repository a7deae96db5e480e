#include "passes/line.h"

/* The type of the lines: one more dimension, all else is the same. */
static Type line_type(QuantBuild *b, Type t) {
    Dim *dims = NEW_ARRAY(b->a, Dim, LINE_RANK);
    memcpy(dims, t.dims, (size_t)t.rank * sizeof *dims);
    dims[t.rank] = dim_of(1);
    t.dims = dims;
    t.rank = LINE_RANK;
    return t;
}

Value *line_of(QuantBuild *b, Node *at, Value *x) {
    static const int64_t last[] = {LINE_RANK - 1};
    if (x->type.rank != LINE_RANK - 1)
        return x;
    Node *n = build_axes(b, at, "Unsqueeze", x, last, 1);
    Value *lines = build_before(b, at, n, x->name, "_lines", line_type(b, x->type));
    lines->stat = x->stat;
    return lines;
}

void line_store(QuantBuild *b, Node *at, Node *n, Value *y) {
    static const int64_t last[] = {LINE_RANK - 1};
    if (y->type.rank == LINE_RANK - 1) {
        Value *lines = build_before(b, at, n, y->name, "_lines", line_type(b, y->type));
        lines->stat = y->stat;
        n = build_axes(b, at, "Squeeze", lines, last, 1);
    }
    node_take_result(n, 0, y);
    node_insert_before(at, n);
    op_resolve(n, b->d);
}
