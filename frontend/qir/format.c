/* `qxc fmt`: spaces, indentation and line breaks between the pieces of a text. */
#include "frontend/qir/pieces.h"

/* ---- layout ---- */

typedef struct Open {
    int kind, indent; /* of the line on which the bracket stands */
    bool dims, tall;
    int head; /* Layout's, until the bracket closes */
} Open;

typedef struct Layout {
    const Pieces *all;
    Buf b;
    Open open[MAX_BRACKETS + 1]; /* the first stands for the file */
    int depth, indent;
    int head; /* the indentation of the line on which the graph or function began that is being laid
                 out */
} Layout;

static int kind_at(const Layout *l, size_t i) {
    return i < l->all->n ? l->all->items[i].kind : 0;
}

static int kind_before(const Layout *l, size_t i) {
    return i ? l->all->items[i - 1].kind : 0;
}

static bool is_opener(int kind) {
    return kind == T_LP || kind == T_LB || kind == T_LT || kind == T_LC;
}

static bool is_closer(int kind) {
    return kind == T_RP || kind == T_RB || kind == T_GT || kind == T_RC;
}

static const Open *inner(const Layout *l) {
    return &l->open[l->depth];
}

static bool at_statement(const Layout *l) {
    return inner(l)->kind == 0 || inner(l)->kind == T_LC;
}

/* Whether the name that ends before `i` is that of a function being defined. */
static bool ends_func_name(const Layout *l, size_t i) {
    while (i >= 2 && kind_before(l, i - 1) == T_DCOLON)
        i -= 2;
    if (i >= 1 && kind_before(l, i) == T_FUNC) /* func ::name::overload */
        return true;
    return i >= 2 && kind_before(l, i - 1) == T_FUNC;
}

/* Whether the `[` at `i` holds dimensions: it follows an element type. */
static bool opens_dims(const Layout *l, size_t i) {
    int q = kind_before(l, i);
    return q == T_IDENT || q == T_ALIAS || q == T_GT;
}

static bool opens_type(const Layout *l, size_t i) {
    switch (kind_before(l, i)) {
    case T_QTYPE:
    case T_SEQ:
    case T_OPTIONAL:
    case T_SPARSE:
    case T_MAP:
    case T_ACC: return !ends_func_name(l, i);
    default: return false;
    }
}

/* `=` has blanks around it between the parts of a statement, not between key and value; a graph
 * as value is a statement's part. */
static bool equals_spaced(const Layout *l, size_t i) {
    int next = kind_at(l, i + 1);
    if (at_statement(l))
        return true;
    if (inner(l)->kind == T_LP)
        return next == T_CONST;
    return l->all->items[i + 1].graph || (next == T_LB && l->all->items[i + 2].graph);
}

static bool space_before(const Layout *l, size_t i) {
    int p = kind_at(l, i), q = kind_before(l, i);
    bool by = q == T_BY && kind_before(l, i - 1) == T_RP; /* else a domain of that name */
    bool leading = p == T_DCOLON && (q == T_EQ || q == T_FUNC || by);
    if (p == T_COMMA || (is_closer(p) && p != T_RC) || (is_opener(q) && q != T_LC) ||
        (p == T_DCOLON && !leading) || q == T_DCOLON)
        return false;
    if (q == T_COMMA)
        return !inner(l)->dims;
    if (p == T_COLON || q == T_COLON) /* %x : float, but -127:127 */
        return (p == T_COLON ? q : kind_before(l, i - 1)) == T_VALUE;
    if (q == T_QMARK && p == T_INT) /* a dimension, ?-1 */
        return false;
    if (p == T_EQ || q == T_EQ)
        return equals_spaced(l, p == T_EQ ? i : i - 1);
    switch (p) {
    case T_LB: return !opens_dims(l, i);
    case T_LT: return !opens_type(l, i);
    case T_LP:
        return q == T_ARROW || q == T_SYM || q == T_GT || l->all->items[i - 1].graph ||
               (q == T_UNDER && i > 1 && l->all->items[i - 2].graph) || ends_func_name(l, i) ||
               (q == T_CONST && kind_before(l, i - 1) == T_ONNX) ||
               (q == T_VALUE && kind_before(l, i - 1) == T_FROM);
    default: return true;
    }
}

/* ---- lines ---- */

static bool breaks_before(const Layout *l, size_t i, const Open *around) {
    const Piece *p = &l->all->items[i];
    int q = kind_before(l, i);
    if (p->kind == PIECE_COMMENT)
        return p->newlines > 0;
    if (p->begins_statement || q == PIECE_COMMENT || q == T_LC || p->kind == T_RC)
        return true;
    if (around->tall)
        return !is_closer(p->kind) && (q == T_COMMA || q == T_LT);
    return p->newlines && (q == T_COMMA || is_opener(q) || is_closer(p->kind));
}

static int indent_inside(const Open *around) {
    switch (around->kind) {
    case 0: return 0;
    case T_LC: return around->indent + 1;
    case T_LT: return around->indent + (around->tall ? 1 : 2);
    case T_LB: return around->indent + 3;
    default: return around->indent + 2;
    }
}

static void new_line(Layout *l, size_t i, const Open *around) {
    const Piece *p = &l->all->items[i];
    bool statement = around->kind == 0 || around->kind == T_LC;
    if (i)
        buf_byte(&l->b, '\n');
    if (i && p->newlines > 1 && statement && kind_before(l, i) != T_LC && p->kind != T_RC)
        buf_byte(&l->b, '\n');
    l->indent = is_closer(p->kind) ? around->indent : indent_inside(around);
    for (int k = 0; k < l->indent; k++)
        buf_text(&l->b, "  ");
}

static void put_piece(Layout *l, size_t i) {
    const Piece *p = &l->all->items[i];
    const Open *around = inner(l);
    if (i == 0 || breaks_before(l, i, around))
        new_line(l, i, around);
    else if (p->kind == PIECE_COMMENT || space_before(l, i))
        buf_byte(&l->b, ' ');
    if (p->graph || ((p->kind == T_FUNC || p->kind == T_DATA) && p->begins_statement))
        l->head = l->indent;
    if (p->kind == T_SCHEME)
        buf_text(&l->b, "scheme {");
    buf_str(&l->b, p->text);
    if (p->kind == T_SCHEME)
        buf_byte(&l->b, '}');
    if (is_closer(p->kind))
        l->head = l->open[l->depth--].head;
    else if (is_opener(p->kind)) /* a body stands below its head's first line */
        l->open[++l->depth] = (Open){p->kind, p->kind == T_LC ? l->head : l->indent,
                                     p->kind == T_LB && opens_dims(l, i), p->tall, l->head};
}

bool qir_format(Arena *a, Diags *d, const char *name, Str text, int first_line, Str *out) {
    text = arena_str(a, text);
    if (!qir_check_syntax(a, d, name, text, first_line))
        return false;
    Pieces all = pieces_of(a, text);
    Layout *l = NEW(a, Layout);
    l->all = &all;
    l->b = buf_new(a);
    for (size_t i = 0; i < all.n; i++)
        put_piece(l, i);
    buf_byte(&l->b, '\n');
    *out = buf_as_str(&l->b);
    Pieces again = pieces_of(a, *out);
    return pieces_equal(&all, &again) ||
           diag_error(d, LOC_NONE, "%s: left as it is, as the formatter would change its meaning",
                      name);
}
