/* The head of the file, then functions and the graph. */
#include "backend/qir/print.h"

static void begin_entry(Printer *p, const char *key, bool *first) {
    buf_text(&p->b, *first ? "model <" : ", ");
    buf_text(&p->b, key);
    buf_byte(&p->b, '=');
    *first = false;
}

static void print_text_entry(Printer *p, const char *key, Str s, bool *first) {
    if (!s.s)
        return;
    begin_entry(p, key, first);
    buf_quoted(&p->b, s);
}

static void print_int_entry(Printer *p, const char *key, bool has, int64_t v, bool *first) {
    if (!has)
        return;
    begin_entry(p, key, first);
    buf_i64(&p->b, v);
}

static void print_model(Printer *p) {
    const Module *m = p->module;
    size_t begin = print_place(p);
    bool first = true;
    print_int_entry(p, "ir_version", m->has_ir_version, m->ir_version, &first);
    print_text_entry(p, "producer_name", m->producer_name, &first);
    print_text_entry(p, "producer_version", m->producer_version, &first);
    print_text_entry(p, "domain", m->domain, &first);
    print_int_entry(p, "model_version", m->has_model_version, m->model_version, &first);
    print_text_entry(p, "doc", m->doc, &first);
    if (first)
        return;
    buf_byte(&p->b, '>');
    end_wrapped(p, begin);
}

static void print_quants(Printer *p) {
    if (p->n_lines)
        buf_byte(&p->b, '\n');
    for (size_t i = 0; i < p->n_lines; i++) {
        size_t begin = print_place(p);
        buf_text(&p->b, "quant ");
        name_print(&p->b, '!', p->lines[i]->alias);
        buf_text(&p->b, " = ");
        quant_print_lists(&p->b, p->lines[i], p->module->graph ? p->few : SIZE_MAX);
        end_wrapped(p, begin);
    }
}

static void print_head(Printer *p) {
    const Module *m = p->module;
    buf_text(&p->b, "qir 1\n");
    for (size_t i = 0; i < m->n_imports; i++)
        print_import(p, m->imports[i]);
    print_model(p);
    if (m->meta.n) {
        size_t begin = print_place(p);
        buf_text(&p->b, "meta ");
        print_meta_fields(p, m->meta);
        end_wrapped(p, begin);
    }
    if (m->extra.n) {
        size_t at = p->b.n;
        print_extra_clause(p, m->extra);
        memmove(p->b.p + at, p->b.p + at + 1, p->b.n - at - 1); /* the clause's leading blank */
        p->b.p[p->b.n - 1] = '\n';
    }
}

static void print_rest(Printer *p) {
    const Module *m = p->module;
    print_quants(p);
    if (m->scheme.s) {
        buf_text(&p->b, "\nscheme {");
        buf_str(&p->b, m->scheme);
        buf_text(&p->b, "}\n");
    }
    buf_byte(&p->b, '\n');
    for (size_t i = 0; i < m->n_functions; i++)
        print_function(p, m->functions[i]);
    if (m->graph) {
        print_graph(p, m->graph);
        buf_byte(&p->b, '\n');
    }
}

void print_module(Printer *p) {
    p->results = NEW_ARRAY(p->arena, bool, p->module->n_values);
    p->names_in = map_new(p->arena);
    name_quants(p);
    print_head(p);
    if (!p->blob) {
        print_rest(p);
        return;
    }
    /* Whether there is a blob line shows only when the rest has been printed. */
    Buf head = p->b;
    p->b = buf_new(p->arena);
    print_rest(p);
    Buf rest = p->b;
    p->b = head;
    const SideFile *blob = p->uses_blob ? print_blob_file(p) : NULL;
    p->failed = p->uses_blob && !blob;
    if (blob) {
        size_t begin = print_place(p);
        buf_text(&p->b, "blob @w ");
        buf_quoted(&p->b, str_from(blob->name));
        buf_fmt(&p->b, " <bytes=%lld, sha256=\"%s\">", blob->size, blob->hash);
        end_wrapped(p, begin);
    }
    buf_put(&p->b, rest.p, rest.n);
}
