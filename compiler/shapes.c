/* -bind and -shape: fixed dimensions for the graph inputs. */
#include "compiler/pipeline.h"
#include "exec/specialise.h"

#include <stdlib.h>

static bool misused(Job *j, const char *wants, const char *text) {
    j->ctx.misused = true;
    return diag_error(j->d, LOC_NONE, "%s, not '%s'", wants, text);
}

/* A past of length 0 is usual, a batch of none is hardly meant. */
static void warn_of_nothing(const Job *j, const Module *m) {
    const Graph *g = m->graph;
    for (size_t i = 0; i < g->n_out; i++) {
        size_t n;
        if (type_count(g->out[i]->type, &n) && n == 0)
            diag_warning(j->d, LOC_NONE,
                         "with these sizes output %s has no elements: a size is 0 (-bind, -shape)",
                         diag_name(j->d, g->out[i]->name));
    }
}

bool job_fix_shapes(Job *j, Module *m) {
    const TextList *binds = &j->o->bind;
    for (size_t i = 0; i < binds->n; i++) {
        const char *eq = strchr(binds->items[i], '=');
        char *end = NULL;
        long long v = eq ? strtoll(eq + 1, &end, 10) : -1;
        if (!eq || v < 0 || *end || end == eq + 1)
            return misused(j, "-bind wants DIM=N", binds->items[i]);
        DimBind b = {{binds->items[i], (size_t)(eq - binds->items[i])}, v};
        if (!module_bind_dims(m, &b, 1, j->d))
            return false;
    }
    for (size_t i = 0; i < j->o->shape.n; i++) {
        const char *text = j->o->shape.items[i], *eq = strrchr(text, '=');
        int64_t dims[MAX_RANK];
        int rank = 0;
        const char *p = eq ? eq + 1 : "";
        while (rank < MAX_RANK && *p) {
            char *end;
            dims[rank] = strtoll(p, &end, 10);
            if (end == p || dims[rank] < 0 || (*end && *end != ','))
                break;
            rank++;
            p = *end ? end + 1 : end;
        }
        if (!eq || *p)
            return misused(j, "-shape wants INPUT=1,3,8,8", text);
        if (!module_set_shape(m, (Str){text, (size_t)(eq - text)}, rank, dims, j->d))
            return false;
    }
    if (!binds->n && !j->o->shape.n)
        return true;
    if (!module_check_fixed(m, j->d))
        return false;
    warn_of_nothing(j, m);
    return true;
}
