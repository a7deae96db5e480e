/* What to try next, as commands: the first that fit, the most useful one first. */
#include "compiler/info_next.h"
#include "compiler/report_parts.h"
#include "compiler/without_effect.h"

#include <math.h>

enum { ENOUGH = 30, LITTLE = 20 /* dB */ };

typedef struct Next {
    Report *r;
    json_t *list;
    bool quantized, measured;
    double worst_output;
    const ReportLayer *worst; /* the layer that costs most; NULL: none does */
    double worst_layer;
} Next;

/* ---- commands ---- */

static void word(Buf *b, Str s) {
    buf_byte(b, ' ');
    buf_shell(b, s);
}

static void option(const Next *x, Buf *b, const char *name, Str value) {
    word(b, arena_strf(x->r->a, "-%s=" STR_FMT, name, STR_ARG(value)));
}

static bool is(const char *text, const char *word) {
    return text && word && strcmp(text, word) == 0;
}

/* A command that repeats this run, but for what it asks anew. */
typedef struct Again {
    Options o;        /* of the command */
    bool random;      /* made-up samples may stay */
    const char *anew; /* an option that is given another value; or NULL */
} Again;

/* What has a part in the result, goes with the new command, and is not said in another way. */
static bool is_repeated(const OptionDef *def, const void *ctx) {
    const Again *c = ctx;
    bool bound = is(c->anew, "min-sqnr") && (is(def->name, "max-drop") || is(def->name, "labels"));
    bool own = is(def->name, "emit") || is(def->name, "passes") || is(def->name, c->anew);
    bool samples = is(def->name, "calib-random") && !c->random;
    bool target = is(def->name, "target") && is(c->o.emit, "c"); /* C has one target */
    return !own && !bound && !samples && !target && option_goes_with(def, &c->o);
}

static bool emits(const Next *x, const char *kind) {
    return is(x->r->s->o.emit, kind);
}

/* What the run emits, if a runtime or a compiler takes it. */
static const char *kind_of(const Next *x) {
    return emits(x, "c") ? "c" : emits(x, "qop") ? "qop" : "qdq";
}

/* The command up to what is new; `emit` NULL: a text. */
static Buf begin(const Next *x, const char *emit, bool calibrates, const char *anew) {
    const Options *o = &x->r->s->o;
    Again c = {.o = *o, .random = !calibrates, .anew = anew};
    c.o.emit = emit;
    c.o.testbench = false;
    c.o.report = is(emit, "qdq") || is(emit, "qop") ? "" : NULL; /* `end` asks for one */
    Buf b = buf_new(x->r->a);
    buf_text(&b, "qxc");
    word(&b, next_readable(x->r->a, o->inputs.items[0]));
    options_repeat(o, is_repeated, &c, &b);
    if (calibrates && !o->calib.n)
        buf_text(&b, " -calib=DATA.npz");
    return b;
}

static Str file(const Next *x, const char *end) {
    return next_result(x->r->a, x->r->s->o.inputs.items[0], end);
}

static void suggest(Next *x, const char *why, Buf *command) {
    json_array_append_new(x->list,
                          json_pack("{s:o, s:o}", "why", report_text_of(x->r, str_from(why)),
                                    "command", report_text_of(x->r, buf_as_str(command))));
}

static void end(const Next *x, Buf *b) {
    const char *kind = kind_of(x);
    buf_fmt(b, " -emit=%s -o", kind);
    word(b, file(x, is(kind, "c") ? ".c" : ".int8.onnx"));
    option(x, b, "report", file(x, ".html"));
}

/* ---- what fits ---- */

static void to_quantize(Next *x) {
    Buf b = begin(x, kind_of(x), true, NULL);
    end(x, &b);
    suggest(x, "Nothing here is quantized. Data of the model's own make integers of it.", &b);
}

static void to_measure(Next *x) {
    Buf b = begin(x, "html", false, "input");
    buf_text(&b, " -input=DATA.npz -emit=html -o");
    word(&b, file(x, ".html"));
    suggest(x, "No data were given, so no loss was measured.", &b);
}

/* Scales of random data, or of statistics alone: what the model's own data say is not known. */
static void to_calibrate(Next *x) {
    Buf b = begin(x, kind_of(x), true, NULL);
    end(x, &b);
    suggest(x, "It was not calibrated on data here, so no loss was measured.", &b);
}

static void to_reach(Next *x) {
    Buf b = begin(x, kind_of(x), true, "min-sqnr");
    buf_fmt(&b, " -min-sqnr=%d", ENOUGH);
    end(x, &b);
    const char *why =
        arena_strf(x->r->a,
                   "The worst output has %.1f dB. This leaves float as few layers as %d dB need.",
                   x->worst_output, ENOUGH)
            .s;
    suggest(x, why, &b);
}

static void to_keep(Next *x) {
    const Options *o = &x->r->s->o;
    const Node *n = x->worst->head;
    Str name = n->from.n && n->from.from[0].op.n ? n->from.from[0].name : n->name;
    if (!name.n)
        return;
    Buf b = begin(x, kind_of(x), !o->dynamic && !o->weight_only, NULL);
    option(x, &b, "keep", scheme_glob_of(x->r->a, name));
    end(x, &b);
    const char *why = arena_strf(x->r->a,
                                 "Rounding the result of this layer alone leaves %.1f dB at the "
                                 "outputs, less than any other. This leaves it float.",
                                 x->worst_layer)
                          .s;
    suggest(x, why, &b);
}

static void to_complete(Next *x) {
    Buf b = begin(x, NULL, true, NULL);
    buf_text(&b, " -o");
    word(&b, file(x, ".complete.qir"));
    suggest(x, "The model came quantized in part. Data decide the rest and keep what is decided.",
            &b);
}

/* What an ONNX file of the run says is the same in C; decided for C, a float model gets others. */
static void to_c(Next *x) {
    const Options *o = &x->r->s->o;
    bool wrote = (emits(x, "qdq") || emits(x, "qop")) && o->output && !out_is_device(o->output);
    bool same = wrote || x->r->j->decided_before;
    Buf b = buf_new(x->r->a);
    if (wrote) {
        buf_text(&b, "qxc");
        word(&b, next_readable(x->r->a, o->output));
    } else {
        b = begin(x, "c", !same, NULL);
    }
    buf_text(&b, " -emit=c -o");
    word(&b, file(x, ".c"));
    suggest(x,
            same ? "The same integers as C99, for a board or a program."
                 : "The model as C99, for a board or a program.",
            &b);
}

/* ---- what is known ---- */

static void look_at_values(Next *x) {
    x->worst_output = INFINITY;
    for (size_t i = 0; i < x->r->n_values; i++) {
        const ReportValue *v = x->r->values[i];
        x->quantized = x->quantized || v->quant;
        if (!v->json || !json_object_get(v->json, "sqnr_db"))
            continue;
        x->measured = true;
        if (v->is_output)
            x->worst_output = fmin(x->worst_output, v->sqnr);
    }
}

static void look_at_layers(Next *x) {
    x->worst_layer = INFINITY;
    for (size_t i = 0; i < x->r->n_layers; i++) {
        const json_t *s = json_object_get(x->r->layers[i]->json, "sensitivity_db");
        if (!s || json_real_value(s) >= x->worst_layer)
            continue;
        x->worst_layer = json_real_value(s);
        x->worst = x->r->layers[i];
    }
}

void report_next(Report *r) {
    const Job *j = r->j;
    Next x = {.r = r, .list = json_array()};
    look_at_values(&x);
    look_at_layers(&x);
    bool chooses = x.quantized && !j->decided_before;
    bool needs_none = j->o->dynamic || j->o->weight_only;
    bool floats = json_integer_value(json_object_get(r->root, "layers_float")) > 0;
    if (!x.quantized)
        to_quantize(&x);
    else if (!x.measured && (needs_none || j->decided_before))
        to_measure(&x);
    else if (!x.measured)
        to_calibrate(&x);
    if (chooses && !needs_none && x.measured && x.worst_output < (double)LITTLE)
        to_reach(&x);
    if (chooses && x.worst && x.worst_layer < (double)ENOUGH)
        to_keep(&x);
    if (x.quantized && j->decided_before && floats)
        to_complete(&x);
    if (x.quantized && j->emit != EMIT_C && (j->decided_before || j->o->calib.n))
        to_c(&x);
    json_object_set_new(r->root, "next", x.list);
}
