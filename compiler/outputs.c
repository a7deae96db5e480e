/* What a run reads is nothing that it may write, and nobody else while it reads. */
#include "compiler/in_place.h"
#include "exec/sample_files.h"

/* All that the command line names as input; folders of data by their files. */
static TextList inputs_of(Session *s) {
    const Options *o = &s->o;
    Arena *a = s->arena;
    TextList all = {0};
    const char *ins[] = {o->weights_from, o->scales_from, o->scheme};
    for (size_t i = 0; i < sizeof ins / sizeof *ins; i++)
        if (ins[i])
            ARENA_PUSH(a, all.items, all.n, all.cap, ins[i]);
    for (size_t i = 0; i < o->inputs.n; i++) {
        bool standard = strcmp(o->inputs.items[i], "-") == 0;
        const char *path = standard ? "/dev/stdin" : o->inputs.items[i];
        ARENA_PUSH(a, all.items, all.n, all.cap, path);
    }
    const TextList *data[] = {&o->calib, &o->input};
    for (size_t l = 0; l < sizeof data / sizeof *data; l++) {
        SampleFiles files = {0};
        if (data[l]->n &&
            sample_files(a, data[l]->items, data[l]->n, &files, diags_new(a, NULL, false)))
            for (size_t i = 0; i < files.n; i++)
                ARENA_PUSH(a, all.items, all.n, all.cap, files.paths[i]);
    }
    return all;
}

bool session_inputs_are_kept(Session *s) {
    const struct {
        const char *option, *path;
    } outs[] = {{"-o ", s->o.output},
                {"-report=", s->o.report},
                {"-search-scheme=", s->o.search_scheme},
                {"-external-data=", s->o.external_data}};
    enum { N = sizeof outs / sizeof *outs };
    bool any = false;
    for (size_t k = 0; k < N; k++)
        any |= outs[k].path != NULL;
    TextList ins = any ? inputs_of(s) : (TextList){0};
    for (size_t k = 0; k < N; k++)
        for (size_t i = 0; outs[k].path && i < ins.n; i++)
            if (!(s->o.in_place && k == 0) && same_file(outs[k].path, ins.items[i]))
                return diag_error(s->d, LOC_NONE, "%s%s would overwrite what is read",
                                  outs[k].option, diag_name(s->d, str_from(outs[k].path)));
    return true;
}

OutFiles *session_outputs(Session *s) {
    OutFiles *out = out_new(s->arena, s->d, !s->o.no_sync);
    TextList ins = inputs_of(s);
    for (size_t i = 0; i < ins.n; i++)
        if (!s->o.in_place || !same_file(ins.items[i], s->o.output))
            out_keep(out, ins.items[i]);
    for (size_t i = 0; i < s->n_modules; i++)
        for (size_t k = 0; k < s->modules[i]->n_maps; k++)
            if (!in_place_replaces(s, s->modules[i]->maps[k]))
                out_keep_map(out, s->modules[i]->maps[k]);
    if (s->o.force)
        out_force(out);
    return out;
}

bool session_inputs_are_whole(Session *s) {
    bool told = s->inputs_changed;
    for (size_t i = 0; i < s->n_modules && !told; i++)
        for (size_t k = 0; k < s->modules[i]->n_maps; k++)
            s->inputs_changed |= !file_is_whole(s->modules[i]->maps[k], s->d);
    if (file_guard_met() && !s->inputs_changed)
        s->inputs_changed =
            !diag_error(s->d, LOC_NONE, "an input became shorter while it was read");
    return !s->inputs_changed;
}

void session_free_modules(Session *s, size_t from) {
    session_inputs_are_whole(s);
    while (s->n_modules > from)
        module_free(s->modules[--s->n_modules]);
}
