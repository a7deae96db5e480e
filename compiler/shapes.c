/* -bind and -shape: fixed dimensions for the graph inputs. */
#include "compiler/pipeline.h"
#include "exec/specialise.h"

#include <stdlib.h>

static bool misused(Job *j, const char *wants, const char *text) {
    j->ctx.misused = true;
    return diag_error(j->d, LOC_NONE, "%s, not '%s'", wants, text);
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
    return module_check_fixed(m, j->d);
}
