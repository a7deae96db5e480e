/* qxc reduce INPUT -test=CMD: the smallest model for which CMD still fails.
 *
 * CMD fails on INPUT in some way: an exit status that is not 0, a signal, or not ending in time. A
 * smaller model counts when CMD fails on it in the same way. Each kind of edit
 * (passes/shrink/shrink.def) is tried on all its places at once, then on halves, quarters and so on
 * down to single ones (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
 * 2002), and all kinds again until none makes the model smaller.
 *
 * Every candidate is made by a process of its own (reduce_candidate.c). It lies
 * in one of two folders, the best so far in the other, always under the name of INPUT. */
#define _GNU_SOURCE
#include "compiler/reduce.h"
#include "compiler/external.h"
#include "compiler/suffix.h"
#include "compiler/work_folder.h"
#include "support/platform.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- files ---- */

static off_t file_size(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static bool same_bytes(const char *a, const char *b) {
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    bool same = f && g && file_size(a) == file_size(b);
    char x[1 << 14], y[1 << 14];
    for (size_t n = 1; same && n > 0;) {
        n = fread(x, 1, sizeof x, f);
        same = fread(y, 1, sizeof y, g) == n && memcmp(x, y, n) == 0;
    }
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    return same;
}

/* A folder of its own for each model, so that what CMD leaves beside it goes with it. */
static bool own_folder(Reducer *r, const char *file) {
    return fresh_folder(path_dir(r->s->arena, file), r->s->d);
}

/* The name under which CMD meets the model: INPUT's, unless a shell might mind it. */
static const char *model_name(const char *input) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *name = path_base(input);
    if (name[0] != '.' && name[0] != '-' && strspn(name, plain) == strlen(name))
        return name;
    return str_ends(str_from(input), ".qir") ? "model.qir" : "model.onnx";
}

static bool make_folders(Reducer *r) {
    Arena *a = r->s->arena;
    int lock; /* kept to the end of the process */
    if (!(r->dir = work_folder(a, &lock, r->s->d)))
        return false;
    const char *dir = r->dir, *name = model_name(r->s->o.inputs.items[0]);
    r->best = arena_strf(a, "%s/a/%s", dir, name).s;
    r->candidate = arena_strf(a, "%s/b/%s", dir, name).s;
    return true;
}

/* ---- running CMD ---- */

static const char *command_for(const Reducer *r) {
    Buf b = buf_new(r->s->arena);
    buf_command(&b, r->s->o.test);
    return arena_str(r->s->arena, buf_as_str(&b)).s;
}

static int run_command(Reducer *r, const char *model, bool silent) {
    enum { DEFAULT_TIMEOUT = 60 };
    int64_t limit = r->s->o.timeout >= 0 ? r->s->o.timeout : DEFAULT_TIMEOUT;
    return child_shell(&r->children, command_for(r), model, silent, limit);
}

static const char *failure_text(const Reducer *r, int failure) {
    if (failure == CHILD_TIMEOUT)
        return "it does not end in time";
    if (failure > 128)
        return arena_strf(r->s->arena, "signal %d (%s)", failure - 128, strsignal(failure - 128)).s;
    return arena_strf(r->s->arena, "exit status %d", failure).s;
}

/* ---- the search ---- */

static bool interrupted(const Reducer *r) {
    return r->children.interrupted;
}

static size_t count_places(Reducer *r, const Shrink *k) {
    Making all = {.from = r->best, .shrink = k};
    r->facts->places = 0;
    return child_wait(&r->children, reducer_make(r, all), 0) == 0 ? r->facts->places : 0;
}

/* Makes the candidate and, when it still fails, the best of it. */
static bool attempt(Reducer *r, const Shrink *k, size_t begin, size_t end) {
    Making some = {.from = r->best, .to = r->candidate, .shrink = k, .places = {begin, end, 0}};
    if (!own_folder(r, r->candidate) ||
        child_wait(&r->children, reducer_make(r, some), 0) != EXIT_DONE ||
        same_bytes(r->best, r->candidate))
        return false;
    size_t nodes = r->facts->nodes;
    r->tests++;
    if (run_command(r, r->candidate, true) != r->failure)
        return false;
    const char *old = r->best;
    r->best = r->candidate;
    r->candidate = old;
    r->nodes = nodes;
    return true;
}

/* Whether the model became smaller. What is taken is gone, so that the next places come up under
 * the same numbers. */
static bool shrink_by(Reducer *r, const Shrink *k) {
    bool smaller = false;
    size_t n = count_places(r, k);
    for (size_t chunk = n; chunk > 0 && !interrupted(r); chunk /= 2)
        for (size_t at = 0; at < n && !interrupted(r);) {
            if (!attempt(r, k, at, at + chunk < n ? at + chunk : n)) {
                at += chunk;
                continue;
            }
            smaller = true;
            size_t left = count_places(r, k);
            if (left >= n)
                at += chunk;
            n = left;
        }
    if (smaller && !r->s->o.quiet)
        fprintf(stderr, "qxc: %-10s %6zu node%s %10lld bytes %6zu tests\n", k->name, r->nodes,
                r->nodes == 1 ? ", " : "s,", (long long)file_size(r->best), r->tests);
    return smaller;
}

static void search(Reducer *r) {
    enum { MAX_ROUNDS = 20 }; /* each round makes it smaller; this is for peace of mind */
    bool smaller = true;
    for (int round = 0; smaller && round < MAX_ROUNDS; round++) {
        smaller = false;
        for (size_t i = 0; i < shrink_count() && !interrupted(r); i++)
            smaller |= shrink_by(r, shrink_at(i));
    }
}

/* ---- before and after ---- */

static bool fails(Reducer *r, const char *model, const char *what) {
    int got = run_command(r, model, r->s->o.quiet);
    Diags *d = r->s->d;
    if (got == CHILD_INTERRUPTED)
        return diag_error(d, LOC_NONE, "interrupted");
    if (got == CHILD_FAILED)
        return diag_error(d, LOC_NONE, "cannot start /bin/sh: %s", strerror(errno));
    if (got == 126 || got == 127)
        return diag_error(d, LOC_NONE, "the shell cannot run the command of -test (status %d)",
                          got);
    if (got == 0)
        return diag_error(d, LOC_NONE, "the command of -test does not fail on %s", what);
    if (r->failure && got != r->failure)
        return diag_error(d, LOC_NONE,
                          "the command of -test fails on %s in another way: %s, not %s", what,
                          failure_text(r, got), failure_text(r, r->failure));
    r->failure = got;
    return true;
}

/* The model as qxc writes it, without any edit, is the first best. */
static ExitCode first_model(Reducer *r) {
    const char *input = r->s->o.inputs.items[0];
    if (!fails(r, input, "the model"))
        return EXIT_WRONG;
    Making copy = {.from = input, .to = r->best, .first = true, .loud = true};
    if (!own_folder(r, r->best))
        return EXIT_IO;
    int code = child_wait(&r->children, reducer_make(r, copy), 0);
    if (interrupted(r)) {
        diag_error(r->s->d, LOC_NONE, "interrupted");
        code = EXIT_WRONG;
    } else if (code > EXIT_IO || code < 0) {
        diag_error(r->s->d, LOC_NONE, "qxc itself fails while it reads the model: %s",
                   failure_text(r, code));
        code = EXIT_WRONG;
    }
    if (code != EXIT_DONE)
        return (ExitCode)code;
    if (r->facts->text && r->s->o.external_data) {
        diag_error(r->s->d, LOC_NONE, "-external-data goes with ONNX: INPUT is a text");
        return EXIT_USAGE;
    }
    if (!suffix_is(&r->s->o, "reduce", r->facts->text ? ".qir" : ".onnx", r->s->d))
        return EXIT_USAGE;
    if (!fails(r, r->best, "the model as qxc writes it"))
        return EXIT_WRONG;
    if (!r->facts->text && !r->s->o.output && isatty(STDOUT_FILENO)) {
        diag_error(r->s->d, LOC_NONE, "binary output does not go to a terminal: use -o FILE");
        return EXIT_USAGE;
    }
    r->nodes = r->facts->nodes;
    if (!r->s->o.quiet)
        fprintf(stderr, "qxc: -test fails with %s\nqxc: %-10s %6zu nodes, %10lld bytes\n",
                failure_text(r, r->failure), "", r->nodes, (long long)file_size(r->best));
    return EXIT_DONE;
}

static ExitCode write_result(Reducer *r) {
    Making last = {.from = r->best, .to = r->s->o.output, .last = true, .loud = true};
    pid_t child = reducer_make(r, last);
    int status = -1;
    /* Without child_wait: a signal must not end it halfway. */
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    ExitCode code = child > 0 && WIFEXITED(status) ? (ExitCode)WEXITSTATUS(status) : EXIT_WRONG;
    if (interrupted(r)) {
        diag_error(r->s->d, LOC_NONE, "interrupted: what was written is the smallest so far");
        code = code == EXIT_DONE ? EXIT_WRONG : code;
    }
    return code;
}

static ExitCode reduce(Reducer *r) {
    if (!make_folders(r))
        return EXIT_IO;
    ExitCode code = first_model(r);
    if (code == EXIT_DONE) {
        search(r);
        code = write_result(r);
    }
    remove_folder(r->dir);
    return code;
}

ExitCode cmd_reduce(Session *s) {
    if (!s->o.test || !*s->o.test) {
        diag_error(s->d, LOC_NONE, "reduce wants the command that fails: -test=CMD");
        return EXIT_USAGE;
    }
    if (s->o.emit || s->o.form) {
        diag_error(s->d, LOC_NONE, "reduce writes what it reads, .onnx or .qir: no -%s here",
                   s->o.emit ? "emit" : "form");
        return EXIT_USAGE;
    }
    if (strcmp(s->o.inputs.items[0], "-") == 0) {
        diag_error(s->d, LOC_NONE, "reduce wants a file, which -test can be run on");
        return EXIT_USAGE;
    }
    if (!external_fits(s))
        return EXIT_USAGE;
    Reducer r = {.s = s};
    r.facts = memory_share(sizeof *r.facts);
    if (!r.facts) {
        diag_error(s->d, LOC_NONE, "cannot share memory: %s", strerror(errno));
        return EXIT_IO;
    }
    children_begin(&r.children);
    ExitCode code = reduce(&r);
    children_end(&r.children);
    memory_unshare(r.facts, sizeof *r.facts);
    return code;
}
