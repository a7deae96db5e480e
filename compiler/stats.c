/* qxc stats merge A B... -o C: a model calibrated in shards, its statistics joined. */
#include "compiler/session.h"

static bool usage(Session *s) {
    TextList *in = &s->o.inputs;
    if (in->n == 0 || strcmp(in->items[0], "merge") != 0)
        return diag_error(s->d, LOC_NONE, "stats wants to know what to do: qxc stats merge A B...");
    in->items++; /* the first model stands first, as for other commands */
    in->n--;
    if (in->n < 2)
        return diag_error(s->d, LOC_NONE, "stats merge wants two models or more");
    return true;
}

/* Modules are read one after the other, so that memory does not grow with their number. */
static bool merge(Session *s, Module *first, size_t i, ExitCode *code) {
    size_t before = s->n_modules;
    Module *m = session_read(s, i, code);
    bool ok = m && stats_merge(first, m, s->d);
    if (s->n_modules > before)
        module_free(s->modules[--s->n_modules]);
    return ok;
}

ExitCode cmd_stats(Session *s) {
    Job j;
    if (!usage(s) || !job_init(&j, &s->o, s->arena, s->d))
        return EXIT_USAGE;
    session_check_suffix(s);
    ExitCode code;
    Module *first = session_read(s, 0, &code);
    if (!first)
        return code;
    for (size_t i = 1; i < s->o.inputs.n; i++)
        if (!merge(s, first, i, &code))
            return code == EXIT_DONE ? EXIT_WRONG : code;
    return session_write(s, &j, first);
}
