#include "support/diag_parts.h"

#include "support/map.h"

enum { DEFAULT_LIMIT = 50, NAME_BYTES = 100 };

Diags *diags_new(Arena *a, FILE *out, bool color) {
    Diags *d = NEW(a, Diags);
    d->arena = a;
    d->out = out;
    d->color = color;
    d->limit = DEFAULT_LIMIT;
    d->text = d->shown = buf_new(a);
    return d;
}

/* Whether anybody gets to see a message of this severity; notes share the fate of what they are to,
 * but for those of no place, which are to the whole. */
static bool is_shown(const Diags *d, Severity sev) {
    return (d->out || d->recording) && !d->suppressed && !(d->quiet && sev != DIAG_ERROR);
}

/* Counts the message; false when it is not to be shown. */
static bool admit(Diags *d, Severity sev, Loc at) {
    int *count = sev == DIAG_ERROR ? &d->errors : sev == DIAG_WARNING ? &d->warnings : NULL;
    if (count) {
        ++*count;
        d->suppressed = diag_past_limit(d, *count - (sev == DIAG_WARNING ? d->merged : 0));
    } else if (sev == DIAG_REMARK || !at.source) {
        d->suppressed = false;
    }
    return is_shown(d, sev);
}

/* As text or as JSON. */
static void set_up(Diags *d, const Message *m) {
    d->shown.n = 0;
    if (d->json)
        message_json(&d->shown, m);
    else
        message_text(&d->shown, m, d->color);
}

static void print(Diags *d, const Message *m) {
    progress_clear(d->progress);
    set_up(d, m);
    fwrite(d->shown.p, 1, d->shown.n, d->out);
}

/* Prints the warnings that wait for others of their format. */
void diags_flush(Diags *d) {
    Merger *m = d->merger;
    MergeNext next;
    d->merger = NULL; /* the note is none that waits */
    while (m && merger_next(m, &next)) {
        progress_clear(d->progress);
        if (next.shown.s)
            fwrite(next.shown.s, 1, next.shown.n, d->out);
        else
            print(d, &next.note);
    }
    d->merger = m;
}

void diags_finish(Diags *d) {
    int errors = d->errors - d->limit;
    int warnings = d->quiet ? 0 : d->warnings - d->merged - d->limit;
    if (!d->out || d->recording)
        return;
    diags_flush(d);
    if (errors <= 0 && warnings <= 0)
        return;
    d->text.n = 0;
    if (errors > 0)
        buf_fmt(&d->text, "%d more error%s", errors, plural(errors));
    if (warnings > 0)
        buf_fmt(&d->text, "%s%d more warning%s", errors > 0 ? " and " : "", warnings,
                plural(warnings));
    buf_text(&d->text, " not shown");
    print(d, &(Message){.severity = DIAG_NOTE, .text = buf_as_str(&d->text), .file = "qxc"});
}

/* What becomes of a warning or a remark about a place. What is about no place is about the command
 * line, where each is a fact of its own. */
static MergeFate fate_of(Diags *d, Severity sev, Loc at, const char *fmt) {
    bool merges = d->merger && (sev == DIAG_WARNING || sev == DIAG_REMARK) && at.source && d->out &&
                  !d->recording && !d->quiet;
    return merges ? merger_ask(d->merger, fmt) : MERGE_ALONE;
}

/* What stands elsewhere is no note to a warning that others stand for: it may be all that is said.
 */
static bool is_apart(const Diags *d, Severity sev, Loc at) {
    const Loc *of = &d->merged_at;
    return sev == DIAG_NOTE && of->source &&
           (of->source != at.source || of->begin != at.begin || of->end != at.end);
}

/* Counts a message; false when it is not to be shown. One that others of its format stand for is
 * counted, and so are its notes. */
static bool admit_fate(Diags *d, Severity sev, Loc at, MergeFate fate) {
    bool merges = fate == MERGE_WAITS || fate == MERGE_MANY;
    if (is_apart(d, sev, at))
        d->suppressed = d->waits = false;
    if (sev != DIAG_NOTE || is_apart(d, sev, at))
        d->merged_at = merges ? at : LOC_NONE;
    if (!merges)
        return admit(d, sev, at);
    d->warnings += sev == DIAG_WARNING;
    d->merged += sev == DIAG_WARNING;
    d->suppressed = fate == MERGE_MANY;
    return fate == MERGE_WAITS;
}

static bool has_to_wait(const Diags *d, const Message *m, MergeFate fate) {
    bool note = m->severity == DIAG_NOTE && (m->place || m->line);
    return fate == MERGE_WAITS || (d->waits && note) ||
           (fate == MERGE_FIRST && merger_is_busy(d->merger));
}

static void let_wait(Diags *d, const char *fmt, const Message *m, MergeFate fate) {
    set_up(d, m);
    if (fate == MERGE_WAITS)
        merger_wait(d->merger, fmt, buf_as_str(&d->shown));
    else if (fate == MERGE_FIRST)
        merger_wait_first(d->merger, buf_as_str(&d->shown));
    else
        merger_add(d->merger, buf_as_str(&d->shown));
}

/* Prints a message, or lets it wait; notes wait with their warning. */
static void print_fate(Diags *d, const char *fmt, const Message *m, MergeFate fate) {
    bool waits = has_to_wait(d, m, fate);
    if (fate == MERGE_FIRST)
        merger_keep(d->merger, fmt);
    d->waits = waits;
    if (waits) {
        let_wait(d, fmt, m, fate);
        return;
    }
    diags_flush(d);
    print(d, m);
}

void diag_v(Diags *d, Severity sev, Loc at, const char *fmt, va_list ap) {
    MergeFate fate = fate_of(d, sev, at, fmt);
    if (!admit_fate(d, sev, at, fate))
        return;
    d->text.n = 0;
    buf_fmt_v(&d->text, fmt, ap);
    Message m = diag_message(d, sev, at);
    if (d->recording) {
        const char *text = arena_str(d->arena, buf_as_str(&d->text)).s;
        DiagRecord r = {sev, at, m.line, m.column, text};
        ARENA_PUSH(d->arena, d->records, d->n_records, d->cap_records, r);
        return;
    }
    m.text = buf_as_str(&d->text);
    print_fate(d, fmt, &m, fate);
}

#define FORWARD(sev)                                                                               \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        diag_v(d, (sev), at, fmt, ap);                                                             \
        va_end(ap);                                                                                \
    } while (0)

void diag(Diags *d, Severity sev, Loc at, const char *fmt, ...) {
    FORWARD(sev);
}

bool diag_error(Diags *d, Loc at, const char *fmt, ...) {
    FORWARD(DIAG_ERROR);
    return false;
}

void diag_warning(Diags *d, Loc at, const char *fmt, ...) {
    FORWARD(DIAG_WARNING);
}
void diag_note(Diags *d, Loc at, const char *fmt, ...) {
    FORWARD(DIAG_NOTE);
}

void diag_remark_once(Diags *d, Loc at, const char *fmt, ...) {
    const char *file = diags_source_name(d, at.source);
    Buf words = buf_new(d->arena);
    va_list ap;
    buf_fmt(&words, "%s: ", file ? file : "");
    size_t begin = words.n;
    va_start(ap, fmt);
    buf_fmt_v(&words, fmt, ap);
    va_end(ap);
    d->told = d->told ? d->told : map_new(d->arena);
    if (map_get(d->told, buf_as_str(&words)))
        return;
    d->suppressed = false;
    if (is_shown(d, DIAG_REMARK))
        map_set(d->told, buf_as_str(&words), d);
    diag(d, DIAG_REMARK, at, "%s", words.p + begin);
}

bool diags_shows_notes(const Diags *d) {
    return is_shown(d, DIAG_NOTE);
}

int diags_errors(const Diags *d) {
    return d->errors;
}
int diags_warnings(const Diags *d) {
    return d->warnings;
}

bool diag_reason(Diags *d, bool ok, int before, Loc at, const char *who) {
    if (ok || d->errors != before)
        return ok;
    d->unexplained++;
    return diag_error(d, at, "%s: refused, and qxc does not say why: please report this as a fault",
                      who);
}

int diags_unexplained(const Diags *d) {
    return d->unexplained;
}

void diags_json(Diags *d, bool json) {
    d->json = json;
}
void diags_quiet(Diags *d, bool quiet) {
    d->quiet = quiet;
}
void diags_merge(Diags *d, bool merge) {
    d->merger = merge ? merger_new(d->arena) : NULL;
}
void diags_set_progress(Diags *d, Progress *p) {
    d->progress = p;
}
Progress *diags_progress(const Diags *d) {
    return d ? d->progress : NULL;
}
void diags_limit(Diags *d, int most) {
    d->limit = most;
}
void diags_record(Diags *d, bool on) {
    d->recording = on;
}

size_t diags_records(const Diags *d, const DiagRecord **out) {
    *out = d->records;
    return d->n_records;
}

const char *diags_first_error(const Diags *d) {
    for (size_t i = 0; i < d->n_records; i++)
        if (d->records[i].severity == DIAG_ERROR)
            return d->records[i].text;
    return NULL;
}

const char *diag_before(Diags *d, const char *file) {
    return file ? arena_strf(d->arena, "%s: ", file).s : "";
}

const char *diag_name(Diags *d, Str name) {
    Buf b = buf_new(d->arena);
    Str shown = name;
    if (name.n > NAME_BYTES) {
        shown.n = NAME_BYTES;
        /* Not in the middle of a character. */
        while (shown.n && ((unsigned char)name.s[shown.n] & 0xC0) == 0x80)
            shown.n--;
    }
    buf_escaped(&b, shown);
    if (shown.n < name.n)
        buf_text(&b, "...");
    return buf_as_str(&b).s;
}
