/* What the suffix of -o says of the kind of file: a slip would put one kind under another's name.
 */
#include "compiler/suffix.h"

#define BIT(kind) (1u << (kind))
#define BINARY    (BIT(EMIT_ONNX) | BIT(EMIT_QDQ) | BIT(EMIT_QOP) | BIT(EMIT_FLOAT))
#define ANY_TEXT  (~BINARY)

static const struct Suffix {
    const char *text;
    unsigned emits;   /* kinds of -emit that write such files; 0: none */
    const char *said; /* these kinds, or who else writes such a file */
} suffixes[] = {
    {".qir", BIT(EMIT_QIR), "qir"},
    {".onnx", BINARY, "onnx, qdq, qop or float"},
    {".c", BIT(EMIT_C), "c"},
    {".cc", BIT(EMIT_C), "c"},
    {".cpp", BIT(EMIT_C), "c"},
    {".cxx", BIT(EMIT_C), "c"},
    {".c++", BIT(EMIT_C), "c"},
    {".dot", BIT(EMIT_DOT), "dot"},
    {".gv", BIT(EMIT_DOT), "dot"},
    {".html", BIT(EMIT_HTML), "html"},
    {".json", BIT(EMIT_JSON) | BIT(EMIT_OVERRIDES) | BIT(EMIT_ENCODINGS),
     "json, overrides or encodings"},
    {".h", 0, "a header goes beside the C: -emit=c -o FILE.c"},
    {".safetensors", 0, "large constants go beside the text: -o FILE.qir"},
    {".txt", ANY_TEXT, "a text"},
    {".csv", 0, "values are written by qxc run, as .npz"},
    {".npz", 0, "values are written by qxc run"},
    {".npy", 0, "values are written by qxc run, as .npz"},
};

static const struct Suffix *find(const char *path) {
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (str_ends(str_from(path), suffixes[i].text))
            return &suffixes[i];
    return NULL;
}

/* The suffix that files of this kind have. */
static const char *suffix_of(EmitKind emit) {
    size_t i = 0;
    while (!(suffixes[i].emits & BIT(emit)))
        i++;
    return suffixes[i].text;
}

/* The path without the suffix that it has. */
static const char *stem(const char *path, const struct Suffix *s, Diags *d) {
    return diag_name(d, (Str){path, strlen(path) - strlen(s->text)});
}

bool suffix_fits(const Options *o, EmitKind emit, Diags *d) {
    const struct Suffix *s = o->output ? find(o->output) : NULL;
    if (!s || s->emits & BIT(emit))
        return true;
    const char *path = diag_name(d, str_from(o->output));
    if (!s->emits)
        return diag_error(d, LOC_NONE, "-o %s: no -emit writes a %s file; %s", path, s->text,
                          s->said);
    if (!o->emit)
        return diag_error(d, LOC_NONE,
                          "-o %s: without -emit qxc writes .qir text: did you mean -emit=%s?", path,
                          s->said);
    const char *own = suffix_of(emit);
    bool any = s->emits == ANY_TEXT;
    return diag_error(d, LOC_NONE, "-o %s: -emit=%s writes a %s file: did you mean -o %s%s%s%s?",
                      path, o->emit, own, stem(o->output, s, d), own,
                      any ? "" : ", or -emit=", any ? "" : s->said);
}

bool suffix_is(const Options *o, const char *command, const char *suffix, Diags *d) {
    const struct Suffix *s = o->output ? find(o->output) : NULL;
    if (!s || strcmp(s->text, suffix) == 0)
        return true;
    return diag_error(d, LOC_NONE, "-o %s: %s writes a %s file here: did you mean -o %s%s?",
                      diag_name(d, str_from(o->output)), command, suffix, stem(o->output, s, d),
                      suffix);
}
