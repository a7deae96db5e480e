/* What the suffix of -o says of the kind of file: a slip would put one kind under another's name.
 */
#include "compiler/suffix.h"

#define BIT(kind) (1u << (kind))
#define BINARY    (BIT(EMIT_ONNX) | BIT(EMIT_QDQ) | BIT(EMIT_QOP))

static const struct Suffix {
    const char *text;
    unsigned emits;   /* kinds of -emit that write such files; 0: none */
    const char *said; /* these kinds, or who else writes such a file */
} suffixes[] = {
    {".qir", BIT(EMIT_QIR), "qir"},
    {".onnx", BINARY, "onnx, qdq or qop"},
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
    {".txt", ~BINARY, "a text"},
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
    diag_warning(d, LOC_NONE, "-emit=%s writes to %s: is the suffix right?", o->emit, path);
    return true;
}

bool suffix_is(const Options *o, const char *command, const char *suffix, Diags *d) {
    const struct Suffix *s = o->output ? find(o->output) : NULL;
    if (!s || strcmp(s->text, suffix) == 0)
        return true;
    const char *path = diag_name(d, str_from(o->output));
    return diag_error(d, LOC_NONE, "-o %s: %s writes a %s file here: did you mean -o %.*s%s?", path,
                      command, suffix, (int)(strlen(path) - strlen(s->text)), path, suffix);
}
