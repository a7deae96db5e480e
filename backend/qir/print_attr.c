/* Attributes, and small parts that many lines share. */
#include "backend/qir/print.h"

static bool is_quantized_word(Str s) { /* int8q */
    return s.n > 1 && s.s[s.n - 1] == 'q' && elem_from_name((Str){s.s, s.n - 1}) != ELEM_UNDEFINED;
}

static bool is_bare(Str s) {
    for (size_t i = 0; i < s.n; i++) {
        char c = s.s[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.')))
            return false;
    }
    return s.n > 0 && !str_is(s, "inf") && !str_is(s, "nan") && !str_is(s, "_") &&
           !is_quantized_word(s);
}

void print_word(Printer *p, Str s) {
    if (is_bare(s))
        buf_str(&p->b, s);
    else
        buf_quoted(&p->b, s);
}

void print_op(Printer *p, Str domain, Str op, Str overload) {
    if (domain.s || overload.s) {
        if (domain.s)
            print_word(p, domain);
        buf_text(&p->b, "::");
    }
    print_word(p, op);
    if (overload.s) {
        buf_text(&p->b, "::");
        print_word(p, overload);
    }
}

void print_string_clause(Printer *p, const char *keyword, Str s) {
    if (!s.s)
        return;
    buf_byte(&p->b, ' ');
    buf_text(&p->b, keyword);
    buf_byte(&p->b, ' ');
    buf_quoted(&p->b, s);
}

/* An entry may lack its key, its value, or both: not the same as an empty one. */
static void print_meta_entry(Printer *p, const StrPair *entry) {
    if (entry->key.s)
        buf_quoted(&p->b, entry->key);
    else
        buf_byte(&p->b, '_');
    if (entry->value.s) {
        buf_byte(&p->b, '=');
        buf_quoted(&p->b, entry->value);
    }
    print_extra_clause(p, entry->extra);
}

void print_meta_fields(Printer *p, Meta meta) {
    buf_byte(&p->b, '<');
    for (size_t i = 0; i < meta.n; i++) {
        if (i)
            buf_text(&p->b, ", ");
        print_meta_entry(p, &meta.items[i]);
    }
    buf_byte(&p->b, '>');
}

void print_meta_clause(Printer *p, Meta meta) {
    if (!meta.n)
        return;
    buf_text(&p->b, " meta ");
    print_meta_fields(p, meta);
}

void print_extra_clause(Printer *p, Str extra) {
    if (!extra.n)
        return;
    buf_text(&p->b, " extra hex(\"");
    for (size_t i = 0; i < extra.n; i++) {
        static const char digits[] = "0123456789abcdef";
        buf_byte(&p->b, digits[(unsigned char)extra.s[i] >> 4]);
        buf_byte(&p->b, digits[(unsigned char)extra.s[i] & 15]);
    }
    buf_text(&p->b, "\")");
}

/* A lone word in quotes would be a name: an operator that needs them has a name, if an empty one.
 */
static void print_origin(Printer *p, const Origin *o) {
    if (o->op.n)
        print_op(p, o->domain, o->op, STR_NONE);
    if (!o->op.n) {
        buf_quoted(&p->b, o->name);
    } else if (o->name.n || (!o->domain.s && !is_bare(o->op))) {
        buf_byte(&p->b, ' ');
        buf_quoted(&p->b, o->name);
    }
}

void print_from_clause(Printer *p, Provenance from) {
    if (!from.n)
        return;
    buf_byte(&p->b, ' ');
    print_from(p, from);
}

void print_from(Printer *p, Provenance from) {
    buf_text(&p->b, "from");
    print_origins(p, from);
}

void print_origins(Printer *p, Provenance from) {
    buf_byte(&p->b, '(');
    for (size_t i = 0; i < from.n; i++) {
        if (i)
            buf_text(&p->b, ", ");
        print_origin(p, &from.from[i]);
    }
    buf_byte(&p->b, ')');
    print_string_clause(p, "by", from.by);
    print_string_clause(p, "in", from.in);
}

void print_import(Printer *p, Import import) {
    buf_text(&p->b, "import ");
    if (import.domain.s) {
        buf_quoted(&p->b, import.domain);
        buf_byte(&p->b, ' ');
    }
    buf_i64(&p->b, import.version);
    print_extra_clause(p, import.extra);
    buf_byte(&p->b, '\n');
}

void print_indent(Printer *p) {
    for (int i = 0; i < p->indent; i++)
        buf_text(&p->b, "  ");
}

/* ---- attributes ---- */

static void print_tensor(Printer *p, const Tensor *t) {
    if (t->elem == ELEM_UNDEFINED) { /* a statistic in a blob that was not there */
        print_blob_ref(p, t);
        return;
    }
    buf_text(&p->b, "tensor(");
    type_print(&p->b, tensor_type(p->arena, t));
    buf_text(&p->b, ", ");
    print_tensor_data(p, t, t->name.n ? t->name : t->blob_key);
    print_string_clause(p, "name", t->name);
    print_tensor_clauses(p, t);
    buf_byte(&p->b, ')');
}

static void print_sparse(Printer *p, const SparseTensor *s) {
    Type whole = type_fixed(p->arena, s->values->elem, s->rank, s->dims);
    buf_text(&p->b, "tensor(sparse<");
    type_print(&p->b, whole);
    buf_text(&p->b, ">, ");
    print_sparse_data(p, s, STR_NONE);
    print_extra_clause(p, s->extra);
    buf_byte(&p->b, ')');
}

static void print_item(Printer *p, const Attr *a, size_t i) {
    switch (a->kind) {
    case ATTR_FLOAT:
    case ATTR_FLOATS: buf_f32(&p->b, a->v.f[i]); break;
    case ATTR_INT:
    case ATTR_INTS: buf_i64(&p->b, a->v.i[i]); break;
    case ATTR_STRING:
    case ATTR_STRINGS: buf_quoted(&p->b, a->v.s[i]); break;
    case ATTR_TENSOR:
    case ATTR_TENSORS: print_tensor(p, a->v.t[i]); break;
    case ATTR_GRAPH:
    case ATTR_GRAPHS: print_graph(p, a->v.g[i]); break;
    case ATTR_SPARSE:
    case ATTR_SPARSES: print_sparse(p, a->v.sp[i]); break;
    case ATTR_TYPE:
    case ATTR_TYPES:
        buf_text(&p->b, "type(");
        print_type_named(p, a->v.ty[i]);
        buf_byte(&p->b, ')');
        break;
    case ATTR_UNDEFINED: break;
    }
}

static bool holds_graph(const Attr *a) {
    return !attr_is_ref(a) && attr_graphs(a);
}

static void print_value(Printer *p, const Attr *a) {
    if (attr_is_ref(a)) {
        name_print(&p->b, '$', a->ref);
        if (a->kind != ATTR_UNDEFINED)
            buf_fmt(&p->b, ":%s", attr_kind_word(a->kind));
        return;
    }
    if (!attr_kind_is_list(a->kind)) {
        print_item(p, a, 0);
        return;
    }
    buf_byte(&p->b, '[');
    for (size_t i = 0; i < a->n; i++) {
        if (i)
            buf_text(&p->b, ", ");
        print_item(p, a, i);
    }
    buf_byte(&p->b, ']');
    if (a->n == 0)
        buf_fmt(&p->b, ":%s", attr_kind_word(a->kind));
}

void print_attr(Printer *p, const Attr *a) {
    print_word(p, a->name);
    if (a->kind == ATTR_UNDEFINED && !attr_is_ref(a))
        return;
    buf_text(&p->b, holds_graph(a) ? " = " : "=");
    print_value(p, a);
    print_string_clause(p, "doc", a->doc);
    print_extra_clause(p, a->extra);
}

/* On the node's line, or one to a line where a graph is among them. */
void print_attrs(Printer *p, const Attr *attrs, size_t n) {
    bool tall = false;
    for (size_t i = 0; i < n; i++)
        tall |= holds_graph(&attrs[i]);
    if (!n)
        return;
    buf_text(&p->b, " <");
    p->indent += tall;
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_byte(&p->b, ',');
        if (tall) {
            buf_byte(&p->b, '\n');
            print_indent(p);
        } else if (i) {
            buf_byte(&p->b, ' ');
        }
        print_attr(p, &attrs[i]);
    }
    p->indent -= tall;
    buf_byte(&p->b, '>');
}
