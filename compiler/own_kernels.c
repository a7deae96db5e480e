#include "compiler/own_kernels.h"
#include "support/buf.h"
#include "target/kernels.h"

bool own_kernels_read(Job *j, Arena *a) {
    const char *path = j->o->kernels;
    Str text;
    if (!path)
        return true;
    if (!file_text(a, path, LOC_NONE, j->d, &text)) {
        j->unreadable = true;
        return false;
    }
    j->kernels = kernels_read(a, j->d, path, text);
    j->faulty_file = j->faulty_file || !j->kernels;
    return j->kernels != NULL;
}

/* The kernels of our own that steps have, to choose from. */
static const char *steps_of(const Program *p) {
    Arena *a = p->module->arena;
    Buf all = buf_new(a);
    Map *done = map_new(a);
    for (size_t i = 0; i < p->n_calls; i++) {
        const Call *c = &p->calls[i];
        if (c->kind != CALL_KERNEL || c->foreign || !map_set(done, str_from(c->kernel->name), done))
            continue;
        buf_fmt(&all, "%s%s", all.n ? ", " : "", c->kernel->name);
    }
    return all.n ? buf_as_str(&all).s : "none";
}

void own_kernels_tell(const Program *p, const ForeignKernels *k, Diags *d) {
    size_t idle = 0;
    for (size_t i = 0; i < k->n; i++) {
        const ForeignEntry *e = &k->entries[i];
        size_t n = foreign_calls(p, e);
        if (n)
            diag(d, DIAG_REMARK, LOC_NONE, "%s: %zu step%s call%s %s in place of %s", k->library, n,
                 n == 1 ? "" : "s", n == 1 ? "s" : "", e->function, e->kernel);
        else
            diag(d, DIAG_NOTE, e->loc, "no step of this model calls %s", e->function);
        idle += !n;
    }
    if (idle && p->n_bounds)
        diag(d, DIAG_NOTE, LOC_NONE,
             "a model with lengths that only a run tells keeps the kernels of qxc");
    else if (idle)
        diag(d, DIAG_NOTE, LOC_NONE, "steps with kernels of qxc have: %s", steps_of(p));
}
