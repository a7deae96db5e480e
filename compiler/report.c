#include "compiler/report.h"
#include "exec/compare.h"
#include "exec/specialise.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Everything is collected as JSON first; the page shows the same. */
typedef struct Report {
    const Job *j;
    Module *m;
    Uses *uses;
    const Node **last_reader; /* by value id; of the value's own graph */
    json_t *root, *nodes;
    Map *row_of; /* name of a result -> row */
    size_t weights, live, peak, integer, floats;
    Str *first_result; /* by row */
} Report;

static json_t *text(const Report *r, Str s) {
    return json_string(diag_name(r->j->d, s)); /* printable, whatever the model holds */
}

static size_t bytes_of(const Value *v) {
    size_t count;
    return v && v->type.kind == TYPE_TENSOR && type_count(v->type, &count)
               ? elem_bytes(v->type.elem, count)
               : 0;
}

/* ---- memory: what is alive while a node runs ---- */

/* What outputs and inner graphs read stays. */
static bool stays(const Report *r, const Value *v) {
    const Use *use;
    size_t count = uses_of(r->uses, v, &use);
    for (size_t i = 0; i < count; i++)
        if (!use[i].node || use[i].node->graph != v->graph)
            return true;
    return false;
}

static void find_readers(Report *r, const Graph *g) {
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->graph == g && n->in[i]->kind != VALUE_CONST)
            r->last_reader[n->in[i]->id] = n;
}

static void count_memory(Report *r, const Node *n) {
    for (size_t i = 0; i < n->n_out; i++)
        r->live += bytes_of(n->out[i]);
    r->peak = r->live > r->peak ? r->live : r->peak;
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v || r->last_reader[v->id] != n)
            continue;
        r->last_reader[v->id] = NULL; /* an operand that stands twice goes once */
        r->live -= stays(r, v) ? 0 : bytes_of(v);
    }
}

/* ---- nodes ---- */

static void add_node(Report *r, const Node *n) {
    NodeReport x = report_node(r->j, n, r->uses);
    json_t *row = json_object(), *out = json_array();
    json_object_set_new(row, "name", text(r, n->name));
    json_object_set_new(row, "op", text(r, n->op));
    json_object_set_new(row, "domain", text(r, n->domain));
    json_object_set_new(row, "kind", json_string(x.kind));
    if (x.runs)
        json_object_set_new(row, "onnxruntime", json_string(x.runs));
    if (x.why)
        json_object_set_new(row, "why", json_string(diag_name(r->j->d, str_from(x.why))));
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            const char *type = type_text(r->m->arena, n->out[i]->type);
            json_array_append_new(out, json_pack("{s:o, s:s}", "name", text(r, n->out[i]->name),
                                                 "type", diag_name(r->j->d, str_from(type))));
            map_set(r->row_of, n->out[i]->name, row);
        }
    json_object_set_new(row, "results", out);
    json_array_append_new(r->nodes, row);
    r->integer += strcmp(x.kind, "integer") == 0;
    r->floats += strcmp(x.kind, "float") == 0;
}

static void add_graph(Graph *g, void *ctx) {
    Report *r = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        r->live += bytes_of(g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        r->weights += bytes_of(g->consts[i]);
    r->peak = r->live > r->peak ? r->live : r->peak;
    find_readers(r, g);
    FOR_NODES(n, g) {
        add_node(r, n);
        count_memory(r, n);
    }
}

/* ---- losses ---- */

/* What a Relu or Clip behind cuts off is lost on purpose. */
static bool is_cut(const Uses *u, const Value *v) {
    const Node *n = uses_only_node(u, v);
    return n && n->def && n->def->quant.kind == QUANT_CLAMP;
}

static bool add_losses(Report *r, Session *s) {
    const TextList *data = s->o.input.n ? &s->o.input : &s->o.calib;
    if (!data->n)
        return true;
    ExitCode code;
    Module *from = session_read(s, 0, &code);
    ProgramOptions options = {.partial = true};
    Comparison c;
    Options o = *r->j->o; /* whatever form is written, values are what is compared */
    o.form = NULL;
    Job plain = *r->j, other = *r->j;
    plain.o = other.o = &o;
    if (!from || !job_prepare_pair(&plain, from, &other, r->m) ||
        !compare_modules(from, r->m, (const char *const *)data->items, data->n, 0, &options,
                         &options, &c, s->d))
        return false;
    const Uses *uses = uses_new(from);
    for (size_t i = 0; i < c.n; i++) {
        json_t *row = map_get(r->row_of, c.rows[i].name);
        if (!row || isnan(c.rows[i].sqnr) || is_cut(uses, c.rows[i].a))
            continue;
        if (isinf(c.rows[i].sqnr))
            json_object_set_new(row, "sqnr_db", json_string("equal"));
        else
            json_object_set_new(row, "sqnr_db", json_real(c.rows[i].sqnr));
    }
    json_object_set_new(r->root, "samples", json_integer((json_int_t)c.samples));
    return true;
}

/* ---- the page ---- */

static void escaped(Buf *b, const char *s) {
    for (; *s; s++)
        switch (*s) {
        case '&': buf_fmt(b, "&amp;"); break;
        case '<': buf_fmt(b, "&lt;"); break;
        case '>': buf_fmt(b, "&gt;"); break;
        case '"': buf_fmt(b, "&quot;"); break;
        case '\'': buf_fmt(b, "&#39;"); break;
        default: buf_byte(b, *s);
        }
}

static void cell(Buf *b, const json_t *row, const char *key) {
    const json_t *v = json_object_get(row, key);
    buf_fmt(b, "<td>");
    if (json_is_string(v))
        escaped(b, json_string_value(v));
    else if (json_is_real(v))
        buf_fmt(b, "%.2f", json_real_value(v));
    buf_fmt(b, "</td>");
}

static void print_row(Buf *b, const json_t *row) {
    buf_fmt(b, "<tr class=\"%s\">", json_string_value(json_object_get(row, "kind")));
    cell(b, row, "name");
    cell(b, row, "op");
    cell(b, row, "kind");
    cell(b, row, "onnxruntime");
    cell(b, row, "sqnr_db");
    buf_fmt(b, "<td>");
    const json_t *out = json_object_get(row, "results");
    for (size_t i = 0; i < json_array_size(out); i++) {
        buf_fmt(b, "%s", i ? "<br>" : "");
        escaped(b, json_string_value(json_object_get(json_array_get(out, i), "type")));
    }
    buf_fmt(b, "</td>");
    cell(b, row, "why");
    buf_fmt(b, "</tr>\n");
}

static Str page(const Report *r) {
    static const char head[] =
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>qxc report</title>\n"
        "<style>body{font-family:sans-serif}table{border-collapse:collapse}"
        "td,th{border:1px solid #ccc;padding:2px 6px;text-align:left}"
        ".integer{background:#e6f4ea}.float{background:#fce8e6}.conversion{color:#777}</style>\n"
        "</head><body>\n<h1>";
    Buf b = buf_new(r->m->arena);
    buf_fmt(&b, "%s", head);
    escaped(&b, json_string_value(json_object_get(r->root, "model")));
    buf_fmt(&b, "</h1>\n<table>\n");
    const char *key;
    json_t *v;
    json_object_foreach(r->root, key, v) if (json_is_integer(v))
        buf_fmt(&b, "<tr><th>%s</th><td>%lld</td></tr>\n", key, (long long)json_integer_value(v));
    buf_fmt(&b, "</table>\n<p></p>\n<table>\n<tr><th>node</th><th>operator</th><th>computes on</th>"
                "<th>in onnxruntime</th><th>SQNR dB</th><th>results</th><th>why</th></tr>\n");
    for (size_t i = 0; i < json_array_size(r->nodes); i++)
        print_row(&b, json_array_get(r->nodes, i));
    buf_fmt(&b, "</table>\n</body></html>\n");
    return buf_as_str(&b);
}

static Str json_of(const Report *r) {
    char *dumped = json_dumps(r->root, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    Str out = arena_strf(r->m->arena, "%s\n", dumped ? dumped : "{}");
    free(dumped);
    return out;
}

static void put_size(Report *r, const char *key, long long size) {
    if (size >= 0)
        json_object_set_new(r->root, key, json_integer((json_int_t)size));
}

static long long file_size(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (long long)st.st_size : -1;
}

/* Of the output and the files beside it; -1 where there is none. */
static long long bytes_after(const Session *s) {
    long long size = s->o.output ? out_size(s->out, s->o.output) : -1;
    return size < 0 ? size : size + side_bytes(s->out);
}

Str report_text(Session *s, const Job *j, Module *m, bool html) {
    Report r = {.j = j,
                .m = m,
                .uses = uses_new(m),
                .last_reader = NEW_ARRAY(m->arena, const Node *, m->n_values),
                .root = json_object(),
                .nodes = json_array(),
                .row_of = map_new(m->arena)};
    const char *path = s->o.inputs.items[0];
    json_object_set_new(r.root, "model", text(&r, str_from(path_base(path))));
    put_size(&r, "bytes_before", file_size(path) < 0 ? -1 : file_size(path) + j->external[0]);
    if (j->emit != EMIT_HTML && j->emit != EMIT_JSON)
        put_size(&r, "bytes_after", bytes_after(s));
    json_object_set_new(r.root, "opset", json_integer(module_opset(m, STR(""))));
    module_each_graph(m, add_graph, &r);
    json_object_set_new(r.root, "nodes_integer", json_integer((json_int_t)r.integer));
    json_object_set_new(r.root, "nodes_float", json_integer((json_int_t)r.floats));
    json_object_set_new(r.root, "bytes_of_constants", json_integer((json_int_t)r.weights));
    json_object_set_new(r.root, "bytes_of_values_at_once", json_integer((json_int_t)r.peak));
    if (j->wrote_c) {
        json_object_set_new(r.root, "arena", json_integer((json_int_t)j->arena));
        json_object_set_new(r.root, "arena_alive", json_integer((json_int_t)j->alive));
        json_object_set_new(r.root, "elements_converted", json_integer(j->c_converted));
    }
    json_object_set(r.root, "nodes", r.nodes);
    Str out = add_losses(&r, s) ? (html ? page(&r) : json_of(&r)) : STR_NONE;
    json_decref(r.nodes);
    json_decref(r.root);
    return out;
}

bool report_write(Session *s, const Job *j, Module *m, FILE *to) {
    Str text = report_text(s, j, m, str_ends(str_from(s->o.report), ".html"));
    if (text.s)
        fwrite(text.s, 1, text.n, to);
    return text.s;
}
