/* A command line from its first word to its exit code. */
#include "compiler/in_place.h"
#include "compiler/expect.h"
#include "compiler/places.h"
#include "compiler/trace.h"
#include "compiler/without_effect.h"
#include "compiler/version.h"
#include "compiler/commit.h"
#include "support/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static bool want_color(const char *when) {
    if (when && strcmp(when, "always") == 0)
        return true;
    if (when && strcmp(when, "never") == 0)
        return false;
    const char *no = getenv("NO_COLOR");
    return stream_is_terminal(stderr) && !(no && *no);
}

/* The last value of an option, or NULL. Asked before the options are parsed, of those that say how
 * the mistakes in them are printed. */
static const char *option_value(const char *name, int argc, char **argv) {
    const char *value = NULL;
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++) {
        const char *p = argv[i] + (argv[i][0] == '-') + (argv[i][0] && argv[i][1] == '-');
        if (p != argv[i] && strncmp(p, name, n) == 0 && p[n] == '=')
            value = p + n + 1;
    }
    return value;
}

/* Data that is not there is told before any work is done. */
static ExitCode check_data(Session *s) {
    const TextList *lists[] = {&s->o.calib, &s->o.input};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            const char *path = lists[k]->items[i];
            struct stat at;
            if (stat(path, &at) != 0) {
                diag_error(s->d, LOC_NONE, "cannot read %s: %s", diag_name(s->d, str_from(path)),
                           strerror(errno));
                return EXIT_IO;
            }
        }
    return EXIT_DONE;
}

static ExitCode (*const functions[])(Session *) = {
#define COMMAND(id, function, ...) function,
#include "compiler/commands.def"
};

/* Texts with expected messages, or several in one file. */
static bool goes_by_text(const Session *s) {
    CommandId c = s->o.command->id;
    return (s->o.verify_diagnostics || s->o.split_input_file) &&
           (c == COMMAND_compile || c == COMMAND_run);
}

static ExitCode dispatch(Session *s) {
    const Command *c = s->o.command;
    if (s->o.help)
        return cmd_help(s);
    if (s->o.version) {
        puts("qxc " QXC_VERSION QXC_COMMIT);
        return EXIT_DONE;
    }
    ExitCode data = c->data ? check_data(s) : EXIT_DONE;
    if (data != EXIT_DONE)
        return data;
    bool some = c->models < 0 && s->o.inputs.n;
    if (c->models && !some && !options_inputs(&s->o, c->models < 0 ? 1 : (size_t)c->models, s->d))
        return EXIT_USAGE;
    return goes_by_text(s) ? run_inputs(s, functions[c->id]) : functions[c->id](s);
}

/* "-o -" is what goes without saying, but for `run`, which prints text there. */
static bool output_is_clear(Session *s) {
    bool run = s->o.command->id == COMMAND_run;
    if (!s->o.output ||
        (strcmp(s->o.output, "-") != 0 && (run || strcmp(s->o.output, "/dev/stdout") != 0)))
        return true;
    if (run)
        return diag_error(s->d, LOC_NONE,
                          "run writes values to a file: -o y.npz; without -o it "
                          "prints them as text");
    s->o.output = NULL;
    return true;
}

/* "3 MiB" or "512 bytes", upwards. */
static void put_bytes(size_t n) {
    if (n < MIB)
        fprintf(stderr, "%zu bytes", n);
    else
        fprintf(stderr, "%zu MiB", n / MIB + (n % MIB > 0));
}

static void tell_largest(const OutOfMemory *oom) {
    if (oom->largest)
        fprintf(stderr, "; the largest tensor is %s", oom->largest);
}

/* Of the limit and what there was no room for. */
static void tell_limit(const Session *s) {
    fprintf(stderr, "this needs more memory than -max-memory allows");
    if (s->oom.requested < SIZE_MAX / 4) {
        fputs(": it asks for ", stderr);
        put_bytes(s->oom.requested);
        fputs(" more", stderr);
    }
    tell_largest(&s->oom);
    fprintf(stderr, "; the limit is %zu MiB above the model, and -max-memory=MIB sets another\n",
            session_memory(s) / MIB);
}

static void tell_system(const OutOfMemory *oom) {
    fputs("out of memory", stderr);
    if (oom->requested && oom->requested < SIZE_MAX / 4) {
        fputs(": the system has no ", stderr);
        put_bytes(oom->requested);
        fputs(" more", stderr);
    }
    tell_largest(oom);
    fputs("\n", stderr);
}

/* How far it came: that says what takes the memory. */
static void tell_memory(const Session *s) {
    const OutOfMemory *oom = &s->oom;
    fputs("qxc: error: ", stderr);
    if (oom->input)
        fprintf(stderr, "%s", oom->input);
    if (oom->at) {
        int line = 1;
        for (const char *p = oom->text; p < *oom->at; p++)
            line += *p == '\n';
        fprintf(stderr, ":%d", line);
    }
    fputs(oom->input ? ": " : "", stderr);
    if (oom->pass)
        fprintf(stderr, "pass %s: ", oom->pass);
    if (oom->limit)
        tell_limit(s);
    else
        tell_system(oom);
}

static ExitCode run(Session *s, int argc, char **argv) {
    if (setjmp(s->oom.env)) {
        progress_clear(diags_progress(s->d));
        if (s->out)
            out_abort(s->out);
        tell_memory(s);
        return EXIT_WRONG;
    }
    s->arena = arena_new(0, &s->oom);
    s->d = diags_new(s->arena, stderr, want_color(option_value("color", argc, argv)));
    const char *look = option_value("diagnostics", argc, argv);
    diags_json(s->d, look && strcmp(look, "json") == 0);
    if (!options_parse(&s->o, s->arena, argc, argv, s->d) || !in_place_settle(s) ||
        !output_is_clear(s) || !session_inputs_are_kept(s))
        return EXIT_USAGE;
    diags_quiet(s->d, s->o.quiet);
    bool json = look && strcmp(look, "json") == 0;
    diags_merge(s->d, !json && !s->o.verbose);
    if (!s->o.quiet && !json && stream_is_terminal(stderr))
        diags_set_progress(s->d,
                           progress_new(s->arena, stderr, stream_columns(stderr), clock_seconds));
    if (s->o.time)
        s->o.trace = trace_new(s->arena);
    places_show(s);
    ExitCode code = options_command_is_known(&s->o, s->d) && options_fit(&s->o, s->d) ? dispatch(s)
                                                                                      : EXIT_USAGE;
    if ((code == EXIT_DONE || code == EXIT_MISSED) && !session_inputs_are_whole(s))
        code = EXIT_IO;
    /* The errors of `reduce` are those of its children; of standard output main tells. */
    bool told = code == EXIT_DONE || code == EXIT_MISSED || s->o.command->id == COMMAND_reduce ||
                ferror(stdout);
    diag_reason(s->d, told, 0, LOC_NONE, s->o.inputs.n ? s->o.inputs.items[0] : "the command");
    return code;
}

ExitCode session_run(int argc, char **argv) {
    Session *s = calloc(1, sizeof *s);
    if (!s) {
        fputs("qxc: error: out of memory\n", stderr);
        return EXIT_WRONG;
    }
    ExitCode code = run(s, argc, argv);
    if (s->d)
        diags_finish(s->d);
    trace_print(s->o.trace, stderr);
    for (size_t i = 0; i < s->n_modules; i++)
        module_free(s->modules[i]);
    arena_free(s->arena);
    free(s);
    return code;
}
