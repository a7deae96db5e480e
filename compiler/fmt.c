/* qxc fmt FILE...: each file in place, if it changes; standard input to standard output. */
#include "compiler/session.h"
#include "frontend/qir/qir_format.h"

static ExitCode write_back(Session *s, const char *path, Str text) {
    s->out = out_new(s->arena, s->d);
    FILE *f = out_open(s->out, path);
    if (!f)
        return EXIT_IO;
    fwrite(text.s, 1, text.n, f);
    return out_commit(s->out, !s->o.no_sync) ? EXIT_DONE : EXIT_IO;
}

static ExitCode format_file(Session *s, const char *path) {
    FileMap *map = file_map(path, LOC_NONE, s->d);
    if (!map)
        return EXIT_IO;
    Str text = arena_str(s->arena, file_bytes(map)), formatted;
    file_unmap(map);
    if (!qir_format(s->arena, s->d, path, text, &formatted))
        return EXIT_WRONG;
    if (strcmp(path, "-") == 0)
        fwrite(formatted.s, 1, formatted.n, stdout);
    else if (!str_eq(text, formatted))
        return write_back(s, path, formatted);
    return EXIT_DONE;
}

/* A file with an error does not keep the others from being formatted. */
ExitCode cmd_fmt(Session *s) {
    ExitCode worst = EXIT_DONE;
    for (size_t i = 0; i < s->o.inputs.n; i++) {
        ExitCode code = format_file(s, s->o.inputs.items[i]);
        worst = worst == EXIT_DONE ? code : worst;
    }
    return worst;
}
