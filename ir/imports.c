/* Imports: which domains a model or a function has operators of, and of what version. */
#include "ir/ir.h"

bool domain_is_onnx(Str d) {
    return d.n == 0 || str_is(d, "ai.onnx");
}

bool domain_equal(Str x, Str y) {
    return str_eq(x, y) || (domain_is_onnx(x) && domain_is_onnx(y));
}

Str function_key(Buf *b, Str domain, Str name, Str overload) {
    b->n = 0;
    buf_str(b, domain_is_onnx(domain) ? STR("") : domain);
    buf_byte(b, '\0');
    buf_str(b, name);
    buf_byte(b, '\0');
    buf_str(b, overload);
    return (Str){b->p, b->n};
}

const char *function_title(Arena *a, Diags *d, const Function *f) {
    const char *name = diag_name(d, f->name);
    return domain_is_onnx(f->domain) ? name
                                     : arena_strf(a, "%s::%s", diag_name(d, f->domain), name).s;
}

/* At one version a second import says nothing new. At two, onnx takes the version of the name that
 * a node spells, onnxruntime the last. */
static bool check_second(const Import *first, const Import *second, Diags *d) {
    const char *name = diag_name(d, second->domain);
    if (first->version == second->version)
        return true;
    diag_error(d, second->loc, "domain \"%s\" is imported twice, at versions %lld and %lld", name,
               (long long)first->version, (long long)second->version);
    diag_note(d, first->loc, "the first import is of \"%s\"", diag_name(d, first->domain));
    return false;
}

bool imports_check(Arena *a, const Import *imports, size_t n, Diags *d) {
    Map *seen = map_new(a);
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        const Import *p = &imports[i];
        bool onnx = domain_is_onnx(p->domain);
        const char *name = diag_name(d, p->domain);
        Str key = onnx ? STR("") : p->domain;
        const Import *first = map_get(seen, key);
        if (first)
            ok = check_second(first, p, d) && ok;
        else
            map_set(seen, key, (void *)p);
        if (onnx && (p->version < 1 || p->version > ONNX_MAX_OPSET))
            ok = diag_error(d, p->loc, "opset %lld is not supported; versions 1 to %d are",
                            (long long)p->version, ONNX_MAX_OPSET);
        else if (p->version < 0)
            ok = diag_error(d, p->loc, "the import of domain \"%s\" has version %lld", name,
                            (long long)p->version);
    }
    return ok;
}

bool ir_version_check(int64_t version, Loc at, Diags *d) {
    return (version >= 1 && version <= ONNX_MAX_IR) ||
           diag_error(d, at, "IR version %lld is not supported; versions 1 to %d are",
                      (long long)version, ONNX_MAX_IR);
}

/* ---- versions of domains ---- */

enum { FEW = 8 }; /* imports are looked through one by one */

static const Import *find_indexed(Arena *a, ImportIndex *index, const Import *imports, size_t n,
                                  Str domain) {
    if (index->imports != imports || index->n != n) {
        *index = (ImportIndex){map_new(a), imports, n};
        for (size_t i = n; i-- > 0;) { /* of equals the first stays */
            Str key = domain_is_onnx(imports[i].domain) ? STR("") : imports[i].domain;
            map_set(index->by_domain, key, (void *)&imports[i]);
        }
    }
    return map_get(index->by_domain, domain_is_onnx(domain) ? STR("") : domain);
}

const Import *import_find(const Module *m, const Function *f, Str domain) {
    const Import *imports = f ? f->imports : m->imports;
    size_t n = f ? f->n_imports : m->n_imports;
    ImportIndex *index = f ? &((Function *)f)->import_index : &((Module *)m)->import_index;
    if (n > FEW)
        return find_indexed(m->arena, index, imports, n, domain);
    for (size_t i = 0; i < n; i++)
        if (domain_equal(imports[i].domain, domain))
            return &imports[i];
    return NULL;
}

int64_t module_opset(const Module *m, Str domain) {
    const Import *import = import_find(m, NULL, domain);
    if (import)
        return import->version;
    bool before_imports = m->n_imports == 0 && m->has_ir_version && m->ir_version < 3;
    return before_imports && domain_is_onnx(domain) ? 1 : 0;
}

int64_t function_opset(const Function *f) {
    const Import *import = import_find(f->body->module, f, STR(""));
    return import ? import->version : 0;
}

void module_set_opset(Module *m, Str domain, int64_t version) {
    bool found = false;
    for (size_t i = 0; i < m->n_imports; i++)
        if (domain_equal(m->imports[i].domain, domain)) { /* "" and "ai.onnx" may both be there */
            m->imports[i].version = version;
            found = true;
        }
    if (found)
        return;
    Import added = {.domain = domain.s ? domain : STR(""), .version = version};
    ARENA_PUSH(m->arena, m->imports, m->n_imports, m->cap_imports, added);
    m->import_index = (ImportIndex){0};
}

void module_import_microsoft(Module *m) {
    if (!module_opset(m, STR("com.microsoft")))
        module_set_opset(m, STR("com.microsoft"), 1);
}
