/* The lines at file level. */
#include "frontend/qir/reader.h"

/* At file level the module's, in a function its own. */
void read_import(Reader *r, const Token *domain, Token version, const Clauses *c) {
    Range at = domain ? range_join(range_of(*domain), range_of(version)) : range_of(version);
    Import import = {.domain = domain ? str_of(r, *domain) : STR_NONE, .loc = loc_of(r, at)};
    Frame *f = r->frame;
    int before = diags_errors(r->diags);
    clauses_check(r, c, "x", "an import");
    if (c)
        import.extra = c->extra;
    if (!int_of(r, version, &import.version)) {
        error_at(r, range_of(version), "this version does not fit int64");
    } else if (!f) {
        Module *m = r->module;
        ARENA_PUSH(r->arena, m->imports, m->n_imports, m->cap_imports, import);
    } else if (f->func) {
        ARENA_PUSH(r->arena, f->func->imports, f->func->n_imports, f->cap_imports, import);
    } else if (!f->broken) {
        error_at(r, at, "imports stand at file level, or in a func");
    }
    r->unsound = r->unsound || diags_errors(r->diags) > before;
}

/* Notes where a line stands of which there is one; true when there was one before. */
static bool second_line(Reader *r, Range *first, Range at, const char *word) {
    if (!first->end) {
        *first = at;
        return false;
    }
    error_at(r, at, "a second '%s' line", word);
    note_at(r, *first, "the first one");
    return true;
}

void read_model(Reader *r, Span fields) {
    static const char *const keys[] = {"ir_version", "producer_name", "producer_version",
                                       "domain",     "model_version", "doc"};
    Module *m = r->module;
    if (second_line(r, &r->model_at, fields.at, "model"))
        return;
    Field *f = take_fields(r, fields);
    check_unique(r, f, fields.n, "entry");
    for (uint32_t i = 0; i < fields.n; i++) {
        const Val *v = &f[i].val;
        Str key = f[i].key;
        clauses_check(r, f[i].clauses, "", "an entry of 'model'");
        if (!f[i].has_val) {
            error_at(r, f[i].at, "'%s' has no value", shown(r, key));
        } else if (str_is(key, "ir_version")) {
            m->has_ir_version = val_int(r, v, "ir_version", &m->ir_version) &&
                                ir_version_check(m->ir_version, loc_of(r, v->at), r->diags);
        } else if (str_is(key, "model_version")) {
            m->has_model_version = val_int(r, v, "model_version", &m->model_version);
        } else if (str_is(key, "producer_name")) {
            val_str(r, v, "producer_name", &m->producer_name);
        } else if (str_is(key, "producer_version")) {
            val_str(r, v, "producer_version", &m->producer_version);
        } else if (str_is(key, "domain")) {
            val_str(r, v, "domain", &m->domain);
        } else if (str_is(key, "doc")) {
            val_str(r, v, "doc", &m->doc);
        } else {
            error_at(r, f[i].at, "'model' has no entry '%s'", shown(r, key));
            suggest(r, f[i].at, key, keys, sizeof keys / sizeof *keys);
        }
    }
}

void read_module_meta(Reader *r, Span fields) {
    if (!second_line(r, &r->meta_at, fields.at, "meta"))
        read_metadata(r, fields, &r->module->meta);
}

void read_module_extra(Reader *r, Val v) {
    if (!second_line(r, &r->extra_at, v.at, "extra"))
        read_extra(r, &v, &r->module->extra);
}

void read_top_graph(Reader *r, Graph *g) {
    if (r->module->graph) {
        diag_error(r->diags, g->loc, "a second graph; others belong in attributes or are 'func'");
        diag_note(r->diags, r->module->graph->loc, "the first one");
        return;
    }
    r->module->graph = g;
}
