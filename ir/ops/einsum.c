/* Einsum: products of operands, summed over indices. Any number of them has a shape; one or two
 * have a kernel. */
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

/* The stride of an index in an operand: those of all dimensions that it names; 0 where they are 1.
 */
static int32_t stride(const Equation *e, Type t, size_t term, int label) {
    int32_t sum = 0;
    for (int i = 0; i < e->rank[term]; i++)
        if (e->label[term][i] == label && t.dims[i].value != 1)
            sum += bind_extent(t, i + 1, t.rank);
    return sum;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    Equation e;
    bool known, kept[DOTS + MAX_RANK] = {false};
    qk_einsum_f32_params p = {0};
    if (!read_equation(c, &e, &known) || !known || !bind_floats_only(b, n))
        return false;
    if (e.n > 2)
        return bind_unsupported(b, n, "it has %zu operands; kernels take one or two", e.n);
    Type a = n->in[0]->type, d = e.n > 1 ? n->in[1]->type : a;
    for (int i = 0; i < e.rank[e.n]; i++) {
        int l = e.label[e.n][i];
        kept[l] = true;
        p.kdim[p.kept] = (int32_t)e.dim[l].value;
        p.ka[p.kept] = stride(&e, a, 0, l);
        p.kb[p.kept++] = e.n > 1 ? stride(&e, d, 1, l) : 0;
    }
    for (int l = 0; l < DOTS + MAX_RANK; l++) {
        if (!e.used[l] || kept[l])
            continue;
        if (p.reduced == 8)
            return bind_unsupported(b, n, "it sums over more than 8 indices");
        p.rdim[p.reduced] = (int32_t)e.dim[l].value;
        p.ra[p.reduced] = stride(&e, a, 0, l);
        p.rb[p.reduced++] = e.n > 1 ? stride(&e, d, 1, l) : 0;
    }
    return bind_call(b, n, "qk_einsum_f32", &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[0]), e.n > 1 ? bind_value(b, n->in[1]) : -1,
                             bind_value(b, n->out[0])});
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
