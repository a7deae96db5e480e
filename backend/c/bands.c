/* Calls in bands of rows (program/bands.h): the calls of the first band, then those of the next,
 * and so on. Bands that differ in nothing but where their rows lie are written as a loop. */
#include "backend/c/writer.h"
#include "program/bands.h"

#define UPPER STR_ARG(w->upper)

/* ---- which bands a loop can hold ---- */

/* From one band to the next; modulo 2^64 where it goes back. */
static size_t step_of(const Call *c, size_t band, int arg) {
    return c->parts[band + 1].at[arg] - c->parts[band].at[arg];
}

/* Whether band `band + 1` of the call lies as far behind `band` as `first + 1` behind `first`. */
static bool goes_on(const Call *c, size_t first, size_t band) {
    if (!bands_same_params(c, first, band + 1))
        return false;
    for (int i = 0; i < c->n_args; i++)
        if (step_of(c, band, i) != step_of(c, first, i) || step_of(c, first, i) > SIZE_MAX / 2)
            return false;
    return true;
}

/* How many bands from `first` on are alike. */
static size_t run_of(const Call *calls, size_t first) {
    size_t band = first;
    for (; band + 1 < calls->n_parts; band++)
        for (size_t i = 0; i < calls->bands->n; i++)
            if (!goes_on(&calls[i], first, band))
                return band + 1 - first;
    return band + 1 - first;
}

/* ---- the text ---- */

static void put_one(CWriter *w, size_t call, size_t band, bool looped, int indent) {
    const Call *c = &w->program->calls[call];
    const CallPart *part = &c->parts[band];
    fprintf(w->f, "%*s%s(&" STR_FMT "[%zu]", indent, "", c->kernel->name, STR_ARG(w->params[call]),
            bands_params_of(c, band));
    for (int i = 0; i < c->n_args; i++) {
        fprintf(w->f, ",\n%*s", indent + 4, "");
        c_put_band(w, c->args[i], part->at[i], looped ? step_of(c, band, i) : 0,
                   c->kernel->args[i].ctype, c->kernel->args[i].is_const);
    }
    fprintf(w->f, ");\n%*s" STR_FMT "_STEP();\n", indent, "", UPPER);
}

static void put_run(CWriter *w, size_t first, size_t band, size_t n, int indent) {
    const Call *calls = &w->program->calls[first];
    if (n > 1) {
        fprintf(w->f, "%*sfor (size_t band = 0; band < %zu; band++) {\n", indent, "", n);
        indent += 4;
    }
    for (size_t i = 0; i < calls->bands->n; i++)
        if (calls[i].parts[band].params)
            put_one(w, first + i, band, n > 1, indent);
    if (n > 1)
        fprintf(w->f, "%*s}\n", indent - 4, "");
}

static void put_about(CWriter *w, const Bands *b, int indent) {
    fprintf(w->f, "%*s/* In %zu bands of rows, so that %zu bytes lie between them, not %zu.",
            indent, "", b->n_bands, b->between, b->whole);
    if (b->moved)
        fprintf(w->f, " %zu bytes of rows\n%*s * that bands share are moved.", b->moved, indent,
                "");
    fputs(" */\n", w->f);
}

void c_put_bands_about(const CWriter *w, FILE *f) {
    BandsTotal t = program_bands(w->program);
    if (!t.calls)
        return;
    fprintf(
        f, " * %zu of its steps run in bands of rows, so that %zu bytes lie between them, not %zu.",
        t.calls, t.between, t.whole);
    if (t.moved)
        fprintf(f, "\n * %zu bytes of rows that bands share are moved a run.", t.moved);
    fputs("\n *\n", f);
}

size_t c_put_bands(CWriter *w, size_t call, int indent) {
    const Call *calls = &w->program->calls[call];
    const Bands *b = calls->bands;
    for (size_t i = 0; i < b->n; i++) {
        if (i && calls[i].node == calls[i - 1].node) /* it moves rows of the next */
            continue;
        fprintf(w->f, "%*s", indent, "");
        size_t told = i;
        while (told + 1 < b->n && calls[told + 1].node == calls[i].node)
            told++;
        c_put_layer(w, &calls[told], indent);
    }
    put_about(w, b, indent);
    for (size_t band = 0, n; band < b->n_bands; band += n) {
        n = run_of(calls, band);
        put_run(w, call, band, n, indent);
    }
    return b->n;
}
