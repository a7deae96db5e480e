/* See compiler/report.h: all is collected as JSON; the page shows the same. */
#include "compiler/report_parts.h"
#include "compiler/version.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { REPORT_SCHEMA = 1 }; /* another number where a field changes its meaning */

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

static const char *const emit_names[] = {
#define EMIT(id, name, file, form, decided) name,
#include "compiler/pipeline.def"
};

static void put_head(Report *r) {
    const Job *j = r->j;
    const char *path = r->s->o.inputs.items[0];
    json_object_set_new(r->root, "schema_version", json_integer(REPORT_SCHEMA));
    json_object_set_new(r->root, "qxc", json_string(QXC_VERSION));
    json_object_set_new(r->root, "model", report_text_of(r, str_from(path_base(path))));
    json_object_set_new(r->root, "emit", json_string(emit_names[j->emit]));
    json_object_set_new(r->root, "runtime", json_string(j->ctx.target->runtime));
    put_size(r, "bytes_before", file_size(path) < 0 ? -1 : file_size(path) + j->external[0]);
    if (j->emit != EMIT_HTML && j->emit != EMIT_JSON)
        put_size(r, "bytes_after", bytes_after(r->s));
    json_object_set_new(r->root, "opset", json_integer(module_opset(r->m, STR(""))));
}

static void put_c(Report *r) {
    const Job *j = r->j;
    json_t *c = json_object();
    json_object_set_new(c, "arena", report_count(j->arena));
    json_object_set_new(c, "arena_alive", report_count(j->alive));
    json_object_set_new(c, "flash", report_count(j->flash));
    json_object_set_new(c, "elements_converted", json_integer(j->c_converted));
    json_object_set_new(r->root, "c", c);
}

static Str json_of(const Report *r) {
    char *dumped = json_dumps(r->root, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    Str out = arena_strf(r->a, "%s\n", dumped ? dumped : "{}");
    free(dumped);
    return out;
}

Str report_text(Session *s, const Job *j, Module *m, bool html) {
    Report r = {.s = s, .j = j, .m = m, .a = m->arena, .uses = uses_new(m), .root = json_object()};
    put_head(&r);
    report_find_layers(&r);
    report_put_layers(&r);
    if (j->wrote_c)
        put_c(&r);
    bool ok = report_losses(&r);
    if (ok) {
        report_put_quantizations(&r);
        report_seen(&r);
        report_sensitivity(&r);
        report_memory(&r);
        report_next(&r);
    }
    Str out = !ok ? STR_NONE : html ? report_page(r.a, r.root) : json_of(&r);
    json_decref(r.root);
    return out;
}

bool report_write(Session *s, const Job *j, Module *m, FILE *to) {
    Str text = report_text(s, j, m, str_ends(str_from(s->o.report), ".html"));
    if (text.s)
        fwrite(text.s, 1, text.n, to);
    return text.s;
}
