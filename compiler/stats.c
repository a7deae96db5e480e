/* qxc stats merge A B... -o C: a model calibrated in shards, its statistics joined. */

#include "compiler/session.h"
#include "compiler/suffix.h"
#include "passes/quantize/masks.h"

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

static void warn_twice(Session *s) {
    const TextList *in = &s->o.inputs;
    for (size_t i = 1; i < in->n; i++)
        for (size_t k = 0; k < i; k++)
            if (same_file(in->items[k], in->items[i])) {
                diag_warning(s->d, LOC_NONE,
                             "'%s' is named twice: what it has seen counts for twice as much",
                             in->items[i]);
                break;
            }
}

static void count_stat(Value *v, void *ctx) {
    *(size_t *)ctx += v->stat != NULL;
}

static Module *read_shard(Session *s, size_t i, ExitCode *code) {
    Module *m = session_read(s, i, code);
    size_t stats = 0;
    if (m)
        module_each_value(m, count_stat, &stats);
    if (m && !stats) {
        diag_error(s->d, LOC_NONE, "'%s' holds no statistics to merge", s->o.inputs.items[i]);
        *code = EXIT_WRONG;
        return NULL;
    }
    return m;
}

/* Modules are read one after the other, so that memory does not grow with their number. */
static bool merge(Session *s, StatsMerge *to, size_t i, ExitCode *code) {
    size_t before = s->n_modules;
    Module *m = read_shard(s, i, code);
    bool ok = m && stats_merge_add(to, m);
    session_free_modules(s, before);
    return ok;
}

ExitCode cmd_stats(Session *s) {
    Job j;
    if (!s->o.emit && s->o.output && str_ends(str_from(s->o.output), ".onnx"))
        s->o.emit = "onnx"; /* models of ONNX to one of ONNX is the rule */
    if (!usage(s) || !job_init(&j, &s->o, s->arena, s->d) || !suffix_fits(&s->o, j.emit, s->d))
        return EXIT_USAGE;
    ExitCode code;
    warn_twice(s);
    Module *first = read_shard(s, 0, &code);
    if (!first)
        return code;
    StatsMerge *to = stats_merge_begin(first, s->d);
    if (!to)
        return EXIT_WRONG;
    for (size_t i = 1; i < s->o.inputs.n; i++)
        if (!merge(s, to, i, &code))
            return code == EXIT_DONE ? EXIT_WRONG : code;
    stats_merge_end(to, masked_from, uses_new(first));
    return session_write(s, &j, first);
}
