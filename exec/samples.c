/* See exec/samples.h. */
#include "exec/samples.h"
#include "exec/sample_files.h"
#include "exec/random.h"
#include "support/npz.h"

typedef struct Port { /* one graph input */
    const Value *value;
    size_t count;      /* elements of a sample */
    NpyReader *reader; /* of its array in the current file */
    bool whole;        /* which has one value for all samples, read when it was opened */
    bool several;      /* which had samples, in any file */
    bool split;        /* along a first dimension of 1 */
    ElemType elem;     /* of that array */
    uint8_t *raw;      /* a sample before conversion */
    size_t raw_bytes;
} Port;

struct Samples {
    Arena *arena;
    Diags *diags;
    Port *ports;
    size_t n_ports;
    void **inputs; /* of a runner */
    SampleFiles files;
    size_t next_file;
    Npz *npz;            /* the current file, or NULL */
    int64_t at, n;       /* next sample in it, how many it has */
    size_t read, random; /* samples so far, those left out too; how many to make up */
    SamplePart part;
    SamplesSeen seen;
    uint64_t state; /* of the generator */
    bool shown;     /* the progress line counts them */
    size_t level;   /* as this */
    bool ok;
};

static Samples *samples_new(Arena *a, const Module *m, Diags *d) {
    Samples *s = NEW(a, Samples);
    *s = (Samples){.arena = a, .diags = d, .ok = true};
    s->ports = NEW_ARRAY(a, Port, m->graph->n_in);
    s->inputs = NEW_ARRAY(a, void *, m->graph->n_in);
    for (size_t i = 0; i < m->graph->n_in; i++) {
        const Value *v = m->graph->in[i];
        Port p = {.value = v};
        if (v->data)
            continue;
        if (!type_count(v->type, &p.count))
            s->ok = d && diag_error(d, v->loc, "graph input %s has no fixed shape: %s",
                                    diag_name(d, v->name), type_text(a, v->type));
        s->ports[s->n_ports++] = p;
    }
    return s;
}

bool samples_ok(const Samples *s) {
    return s->ok;
}

static bool fail(Samples *s) {
    s->ok = false;
    return false;
}

/* ---- one file ---- */

static void close_file(Samples *s) {
    for (size_t i = 0; i < s->n_ports; i++) {
        npy_reader_close(s->ports[i].reader);
        s->ports[i].reader = NULL;
    }
    npz_close(s->npz);
    s->npz = NULL;
}

/* ---- how far it is ---- */

/* Where there is one file it says how many samples there are. */
static size_t known_total(const Samples *s) {
    return !s->files.n ? s->random : s->files.n == 1 && s->n > 0 ? (size_t)s->n : 0;
}

static void show_progress(Samples *s) {
    Progress *p = diags_progress(s->diags);
    if (!p)
        return;
    if (!s->shown)
        s->level = progress_begin(p, "sample", known_total(s));
    s->shown = true;
    progress_step(p, s->level, s->read);
}

static void hide_progress(Samples *s) {
    if (s->shown)
        progress_end(diags_progress(s->diags), s->level);
    s->shown = false;
}

void samples_close(Samples *s) {
    hide_progress(s);
    close_file(s);
}

static const char *current_path(const Samples *s) {
    return diag_name(s->diags, str_from(s->files.paths[s->next_file - 1]));
}

static int no_array(Samples *s, const Value *v) {
    size_t n = npz_size(s->npz);
    const char **names = NEW_ARRAY(s->arena, const char *, n);
    Buf list = buf_new(s->arena);
    for (size_t k = 0; k < n; k++) {
        names[k] = arena_str(s->arena, npz_at(s->npz, k)->name).s;
        if (k < 8)
            buf_fmt(&list, "%s%s", k ? ", " : "", diag_name(s->diags, npz_at(s->npz, k)->name));
    }
    diag_error(s->diags, LOC_NONE, "'%s' has no array for graph input %s; it holds %s%s",
               current_path(s), diag_name(s->diags, v->name), n ? buf_as_str(&list).s : "nothing",
               n > 8 ? ", ..." : "");
    diag_did_you_mean(s->diags, LOC_NONE, v->name, names, n);
    return -1;
}

static int find_array(Samples *s, const Value *v) {
    int i = sample_array_of(s->npz, s->files.paths[s->next_file - 1], v, s->n_ports);
    return i < 0 ? no_array(s, v) : i;
}

static void put_dims(Buf *b, const char *first, int rank, const int64_t *dims) {
    buf_text(b, first);
    for (int i = 0; i < rank; i++)
        buf_fmt(b, "%s%lld", i || first[1] ? "," : "", (long long)dims[i]);
    buf_text(b, "]");
}

static bool check_shape(Samples *s, const Value *v, const NpyArray *array, SampleLayout l) {
    Type t = v->type;
    bool one = t.rank > 0 && t.dims[0].value == 1, same = l.fits;
    int64_t *dims = NEW_ARRAY(s->arena, int64_t, (size_t)t.rank);
    for (int i = 0; same && l.type + i < t.rank; i++)
        same = array->dims[l.data + i] == t.dims[l.type + i].value;
    if (same)
        return true;
    for (int i = 0; i < t.rank; i++)
        dims[i] = t.dims[i].value;
    Buf want = buf_new(s->arena), have = buf_new(s->arena);
    put_dims(&want, "[samples", t.rank - one, dims + one);
    put_dims(&have, "[", array->rank, array->dims);
    if (!one) {
        buf_text(&want, ", or ");
        put_dims(&want, "[", t.rank, dims);
        buf_text(&want, " for all samples");
    }
    return diag_error(s->diags, LOC_NONE,
                      "'%s': array for graph input %s has shape %s, expected %s", current_path(s),
                      diag_name(s->diags, v->name), buf_as_str(&have).s, buf_as_str(&want).s);
}

static bool open_port(Samples *s, Port *p) {
    int i = find_array(s, p->value);
    if (i < 0)
        return false;
    const NpyArray *array = npz_at(s->npz, (size_t)i);
    SampleLayout l = sample_layout(p->value->type, array);
    if (!check_shape(s, p->value, array, l))
        return false;
    p->whole = l.whole;
    s->seen.extra |= l.extra;
    p->split |= !l.extra && !l.whole;
    p->several |= !l.whole;
    p->elem = (ElemType)array->elem;
    if (array->elem && !sample_convertible(p->value, p->elem))
        return diag_error(s->diags, LOC_NONE, "'%s': graph input %s is %s, the array %s",
                          current_path(s), diag_name(s->diags, p->value->name),
                          type_text(s->arena, p->value->type), elem_name(p->elem));
    if (s->n >= 0 && l.n != s->n && !l.whole)
        return diag_error(
            s->diags, LOC_NONE, "'%s': %lld samples of graph input %s, %lld of the others",
            current_path(s), (long long)l.n, diag_name(s->diags, p->value->name), (long long)s->n);
    s->n = l.whole ? s->n : l.n;
    size_t bytes = p->count * array->elem_size;
    if (bytes > p->raw_bytes) {
        p->raw = arena_alloc(s->arena, bytes);
        p->raw_bytes = bytes;
    }
    p->reader = npy_reader(s->npz, (size_t)i);
    return p->reader && (!p->whole || npy_read_at(p->reader, 0, p->count, p->raw));
}

static bool open_file(Samples *s) {
    close_file(s);
    s->npz = npz_open(s->arena, s->files.paths[s->next_file++], LOC_NONE, s->diags);
    s->at = 0;
    s->n = -1;
    s->seen.files++;
    bool ok = s->npz != NULL;
    for (size_t i = 0; ok && i < s->n_ports; i++)
        ok = open_port(s, &s->ports[i]);
    if (ok && s->n < 0)
        s->n = 1; /* no inputs, or none with an axis of samples: one run */
    return ok;
}

/* ---- the stream ---- */

Samples *samples_open(Arena *a, const Module *m, const char *const *paths, size_t n, Diags *d) {
    Samples *s = samples_new(a, m, d);
    if (!s->ok || !sample_files(a, paths, n, &s->files, d))
        return NULL;
    if (samples_rewind(s))
        return s;
    samples_close(s);
    return NULL;
}

bool samples_rewind(Samples *s) {
    s->read = s->next_file = 0;
    s->seen = (SamplesSeen){0};
    s->state = RANDOM_SEED;
    if (s->files.n && !open_file(s))
        return fail(s);
    return s->ok;
}

static void pass_over(Samples *s) {
    s->at++;
    s->read++;
}

static bool read_sample(Samples *s, void *const *dst) {
    for (size_t i = 0; i < s->n_ports; i++) {
        Port *p = &s->ports[i];
        bool read =
            p->whole || npy_read_at(p->reader, (uint64_t)s->at * p->count, p->count, p->raw);
        if (!read || !sample_convert(p->value, p->elem, p->raw, dst[i], p->count, s->diags))
            return fail(s);
    }
    pass_over(s);
    return true;
}

/* ---- made-up samples ---- */

static bool make_sample(Samples *s, void *const *dst) {
    if (s->read == s->random)
        return false;
    for (size_t i = 0; i < s->n_ports; i++)
        random_elements(&s->state, s->ports[i].value, dst[i], s->ports[i].count);
    s->read++;
    return true;
}

Samples *samples_random(Arena *a, const Module *m, size_t count) {
    Samples *s = samples_new(a, m, m->diags);
    s->random = count;
    samples_rewind(s);
    return s;
}

/* ---- what callers use ---- */

/* Opens the next file where the current one has no sample left. False at the end and on errors. */
static bool find_sample(Samples *s) {
    while (s->ok && s->at >= s->n) {
        if (s->next_file == s->files.n)
            return false;
        if (!open_file(s))
            return fail(s);
    }
    return s->ok;
}

/* As above, at a sample of the part that was asked for. */
static bool find_in_part(Samples *s) {
    while (find_sample(s)) {
        bool held_back = s->read % 3 == 2;
        if (s->part == SAMPLES_ALL || held_back == (s->part == SAMPLES_HELD_BACK))
            return true;
        pass_over(s);
    }
    return false;
}

bool samples_next(Samples *s, void *const *dst) {
    if (!s->ok)
        return false;
    show_progress(s);
    bool there = s->files.n ? find_in_part(s) && read_sample(s, dst) : make_sample(s, dst);
    if (!there)
        hide_progress(s);
    return there;
}

bool samples_skip(Samples *s) {
    bool there = s->files.n && find_in_part(s);
    if (there)
        pass_over(s);
    return there;
}

bool samples_take(Samples *s, SamplePart part) {
    s->part = part;
    return samples_rewind(s);
}

bool samples_count(Samples *s, size_t *n) {
    *n = 0;
    if (!s->files.n)
        *n = s->random;
    while (samples_skip(s))
        ++*n;
    return s->ok && samples_rewind(s);
}

SamplesSeen samples_seen(const Samples *s) {
    SamplesSeen seen = s->seen;
    seen.n = s->read;
    for (size_t i = 0; i < s->n_ports; i++)
        seen.extra &= !s->ports[i].split;
    return seen;
}

bool samples_several(const Samples *s, const Value *input) {
    bool several = false;
    for (size_t i = 0; i < s->n_ports; i++)
        several |= s->ports[i].value == input && s->ports[i].several;
    return several;
}

bool samples_load(Samples *s, Runner *r) {
    for (size_t i = 0; i < s->n_ports; i++)
        s->inputs[i] = runner_input(r, i);
    return samples_next(s, s->inputs);
}
