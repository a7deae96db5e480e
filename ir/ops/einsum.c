/* Einsum: products of operands, summed over indices. The kernel takes one or two operands; more are
 * multiplied from left to right, and each index is summed over with the last operand that has it.
 */
#include "ir/ops/bind.h"

typedef struct EinsumAttrs {
    Str equation;
} EinsumAttrs;

static const AttrSpec attrs[] = {
    ATTR(EinsumAttrs, equation, "equation", ATTR_STRING, .required = true),
    A_END,
};

enum { MOST_TERMS = 16, LETTERS = 128, DOTS = 128, MOST_LABELS = 2 * MAX_RANK };

/* Labels of operands and result: letters, and DOTS + i for the i-th dimension of an ellipsis. */
typedef struct Equation {
    size_t n;
    int rank[MOST_TERMS + 1]; /* of the operands, then of the result */
    int label[MOST_TERMS + 1][MAX_RANK];
    int dots; /* dimensions of the ellipsis */
    Dim dim[DOTS + MAX_RANK];
    bool used[DOTS + MAX_RANK];
} Equation;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* One term of the text, up to a comma or arrow; `rank` is the operand's, -1 for the result. */
static bool read_term(const OpCtx *c, Equation *e, size_t term, Str text, int rank) {
    int letters = 0, n = 0;
    bool dots = false;
    for (size_t i = 0; i < text.n; i++)
        letters += is_letter(text.s[i]);
    for (size_t i = 0; i < text.n; i++) {
        if (text.s[i] == ' ')
            continue;
        bool ellipsis = i + 2 < text.n && memcmp(text.s + i, "...", 3) == 0 && !dots;
        if (!ellipsis && !is_letter(text.s[i]))
            return op_error_attr(c, "equation", "'%c' is no index", text.s[i]);
        if (ellipsis && rank >= 0 && rank < letters)
            return op_error_in(c, term, "has %d dimensions, the equation names %d", rank, letters);
        if (ellipsis && rank >= 0 && e->dots >= 0 && e->dots != rank - letters)
            return op_error_attr(c, "equation", "the ellipsis stands for %d dimensions, and for %d",
                                 e->dots, rank - letters);
        if (ellipsis && rank >= 0)
            e->dots = rank - letters;
        int count = ellipsis ? (e->dots < 0 ? 0 : e->dots) : 1;
        if (n + count > MAX_RANK)
            return op_error_attr(c, "equation", "a term has more than %d indices", MAX_RANK);
        for (int k = 0; k < count; k++)
            e->label[term][n++] = ellipsis ? DOTS + k : text.s[i];
        dots |= ellipsis;
        i += ellipsis ? 2 : 0;
    }
    e->rank[term] = n;
    return rank < 0 || rank == n ||
           op_error_in(c, term, "has %d dimensions, the equation gives it %d", rank, n);
}

static bool join_dims(const OpCtx *c, Equation *e, size_t term) {
    Type t = op_type(c, term);
    for (int i = 0; i < e->rank[term]; i++) {
        int at = e->label[term][i];
        Dim d = t.dims[i], known = e->dim[at];
        if (!e->used[at] || known.value == 1 || (known.value < 0 && d.value >= 0 && d.value != 1))
            e->dim[at] = d;
        else if (d.value >= 0 && d.value != 1 && known.value >= 0 && d.value != known.value)
            return op_error_in(c, term, "dimension %d is %lld, elsewhere its index has %lld", i,
                               (long long)d.value, (long long)known.value);
        e->used[at] = true;
    }
    return true;
}

/* Without an arrow the result has the ellipsis, then the letters that stand once, in their order.
 */
static bool implicit_result(const OpCtx *c, Equation *e) {
    int count[LETTERS] = {0}, n = 0;
    for (size_t t = 0; t < e->n; t++)
        for (int i = 0; i < e->rank[t]; i++)
            if (e->label[t][i] < LETTERS)
                count[e->label[t][i]]++;
    for (int k = 0; k < e->dots; k++)
        e->label[e->n][n++] = DOTS + k;
    for (int l = 0; l < LETTERS; l++) {
        if (count[l] != 1)
            continue;
        if (n == MAX_RANK)
            return op_error_attr(c, "equation", "the result has more than %d indices", MAX_RANK);
        e->label[e->n][n++] = l;
    }
    e->rank[e->n] = n;
    return true;
}

static bool check_result(const OpCtx *c, const Equation *e) {
    bool seen[DOTS + MAX_RANK] = {false};
    for (int i = 0; i < e->rank[e->n]; i++) {
        int at = e->label[e->n][i];
        if (!e->used[at])
            return op_error_attr(c, "equation", "index '%c' of the result stands in no operand",
                                 at);
        if (seen[at])
            return op_error_attr(c, "equation", "an index stands twice in the result");
        seen[at] = true;
    }
    return true;
}

/* `known` is false where a rank is not. */
static bool read_equation(const OpCtx *c, Equation *e, bool *known) {
    Str text = ((const EinsumAttrs *)c->attrs)->equation;
    size_t arrow = 0, from = 0;
    *e = (Equation){.dots = -1};
    *known = true;
    for (size_t i = 0; i < c->n_in; i++)
        *known = *known && op_type(c, i).rank >= 0;
    if (!*known)
        return true;
    while (arrow < text.n && !(arrow + 1 < text.n && memcmp(text.s + arrow, "->", 2) == 0))
        arrow++;
    for (size_t i = 0; i <= arrow; i++) {
        if (i < arrow && text.s[i] != ',')
            continue;
        if (e->n == MOST_TERMS)
            return op_error_attr(c, "equation", "it has more than %d operands", MOST_TERMS);
        if (e->n == c->n_in)
            return op_error_attr(c, "equation", "there are %zu operands, the equation has more",
                                 c->n_in);
        if (!read_term(c, e, e->n, (Str){text.s + from, i - from}, op_type(c, e->n).rank) ||
            !join_dims(c, e, e->n))
            return false;
        e->n++;
        from = i + 1;
    }
    if (e->n != c->n_in)
        return op_error_attr(c, "equation", "there are %zu operands, the equation has %zu", c->n_in,
                             e->n);
    bool ok = arrow == text.n
                  ? implicit_result(c, e)
                  : read_term(c, e, e->n, (Str){text.s + arrow + 2, text.n - arrow - 2}, -1);
    return ok && check_result(c, e);
}

static bool verify(const OpCtx *c) {
    Equation e;
    bool known;
    return read_equation(c, &e, &known);
}

static bool infer(OpCtx *c) {
    Equation e;
    bool known;
    Type x = op_type(c, 0);
    if (!read_equation(c, &e, &known) || !known || x.kind != TYPE_TENSOR)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)e.rank[e.n] + 1);
    for (int i = 0; i < e.rank[e.n]; i++)
        dims[i] = e.dim[e.label[e.n][i]];
    c->out[0] = type_tensor(type_real_elem(x), e.rank[e.n], dims);
    return true;
}

/* An operand, or the product of some: its elements and the indices of its dimensions. */
typedef struct Factor {
    int buffer, rank; /* buffer -1: none, which is 1 */
    const int *label;
    Type type;
} Factor;

/* The stride of an index in a factor: those of all dimensions that it names; 0 where they are 1. */
static int32_t stride(const Factor *f, int label) {
    int32_t sum = 0;
    for (int i = 0; i < f->rank; i++)
        if (f->label[i] == label && f->type.dims[i].value != 1)
            sum += bind_extent(f->type, i + 1, f->rank);
    return sum;
}

static bool has(const Factor *f, int label) {
    for (int i = 0; i < f->rank; i++)
        if (f->label[i] == label)
            return true;
    return false;
}

_Static_assert(sizeof(qk_einsum_i_params) == sizeof(qk_einsum_f32_params), "copied as it is");

/* y = x * z, or x, summed over the indices that y has not. */
static bool multiply(Binder *b, const Node *n, const Equation *e, const Factor *x, const Factor *z,
                     const Factor *y) {
    qk_einsum_f32_params p = {0};
    for (int i = 0; i < y->rank; i++) {
        p.kdim[p.kept] = (int32_t)e->dim[y->label[i]].value;
        p.ka[p.kept] = stride(x, y->label[i]);
        p.kb[p.kept++] = stride(z, y->label[i]);
    }
    for (int l = 0; l < DOTS + MAX_RANK; l++) {
        if (has(y, l) || (!has(x, l) && !has(z, l)))
            continue;
        if (p.reduced == 8)
            return bind_unsupported(b, n, "it sums over more than 8 indices");
        p.rdim[p.reduced] = (int32_t)e->dim[l].value;
        p.ra[p.reduced] = stride(x, l);
        p.rb[p.reduced++] = stride(z, l);
    }
    ElemType elem = y->type.elem;
    const char *kernel = elem_is_int(elem) ? bind_kernel(b, "einsum_i", 1, &elem) : "qk_einsum_f32";
    return bind_call(b, n, kernel, &p, sizeof p, 3, (int[]){x->buffer, z->buffer, y->buffer});
}

static Factor operand(Binder *b, const Node *n, const Equation *e, size_t i) {
    return (Factor){bind_value(b, n->in[i]), e->rank[i], e->label[i], n->in[i]->type};
}

/* The product of x and operand i, with the indices that later operands or the result have. */
static bool between(Binder *b, const Node *n, const Equation *e, const Factor *x, size_t i,
                    Factor *y) {
    Dim *dims = NEW_ARRAY(binder_arena(b), Dim, MAX_RANK);
    int *label = NEW_ARRAY(binder_arena(b), int, MAX_RANK);
    Factor z = operand(b, n, e, i);
    size_t count = 1, most = 1; /* 0s are 1 for the indices beside them */
    *y = (Factor){.label = label};
    for (int l = 0; l < DOTS + MAX_RANK; l++) {
        bool later = false;
        for (size_t t = i + 1; t <= e->n; t++)
            later |= has(&(Factor){.rank = e->rank[t], .label = e->label[t]}, l);
        if (!later || (!has(x, l) && !has(&z, l)))
            continue;
        if (y->rank == MAX_RANK)
            return bind_unsupported(b, n, "a product of its operands has more than %d indices",
                                    MAX_RANK);
        dims[y->rank] = e->dim[l];
        label[y->rank++] = l;
        count *= (size_t)e->dim[l].value;
        most *= e->dim[l].value ? (size_t)e->dim[l].value : 1;
        if (most > INT32_MAX)
            return bind_unsupported(b, n, "a product of its operands has too many elements");
    }
    y->type = type_tensor(x->type.elem, y->rank, dims);
    y->buffer = bind_temp(b, x->type.elem, count);
    return multiply(b, n, e, x, &z, y);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Equation e;
    bool known;
    bool plain = elem_is_int(n->in[0]->type.elem) && !bind_any_quant(n);
    if (!read_equation(c, &e, &known) || !known || !(plain || bind_floats_only(b, n)))
        return false;
    Factor x = operand(b, n, &e, 0), next, last = {.buffer = -1};
    for (size_t i = 1; i + 1 < e.n; i++, x = next)
        if (!between(b, n, &e, &x, i, &next))
            return false;
    if (e.n > 1)
        last = operand(b, n, &e, e.n - 1);
    return multiply(
        b, n, &e, &x, &last,
        &(Factor){bind_value(b, n->out[0]), e.rank[e.n], e.label[e.n], n->out[0]->type});
}

/* Along an index that is not summed over, and of which no operand has the diagonal. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    Equation e;
    bool known;
    int to = -1;
    (void)result;
    if (!read_equation(c, &e, &known) || !known)
        return -1;
    for (int k = 0; k < e.rank[e.n]; k++)
        to = e.label[e.n][k] == e.label[i][axis] ? k : to;
    for (int k = 0; k < e.rank[i]; k++)
        to = k != axis && e.label[i][k] == e.label[i][axis] ? -1 : to;
    return to;
}

const OpDef op_Einsum = {
    .domain = "",
    .name = "Einsum",
    .attrs_size = sizeof(EinsumAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
