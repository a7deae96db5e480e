/* A model that is decided in part: what it leaves open is decided, the rest is kept. The steps of
 * it that are no passes, and the words about it. */
#include "compiler/complete.h"
#include "compiler/doubtful.h"
#include "compiler/steps.h"
#include "compiler/without_effect.h"

#include "passes/quantize/choice.h"
#include "passes/quantize/loosen.h"
#include "passes/quantize/open.h"

/* Data, or a name, for a model that has decisions already. */
bool job_adds(const Job *j) {
    const Options *o = j->o;
    return j->form > FORM_FLOAT && j->form != FORM_BACK && job_is_static(j) &&
           (options_have_data(o) || o->redecide.n);
}

typedef struct Left {
    const PassContext *c;
    bool any;
} Left;

/* A float operator that could be integer. */
static void look_for_float(Graph *g, void *ctx) {
    Left *left = ctx;
    FOR_NODES(n, g) {
        const Value *y = n->n_out ? n->out[0] : NULL;
        left->any = left->any || (y && !y->type.quant && type_real_elem(y->type) == ELEM_FLOAT &&
                                  !why_never_integer(n) && node_conversion(n) == CONVERT_NONE &&
                                  !op_prefers_float(n) && !choice_why_kept(left->c, n));
    }
}

/* Whether types leave something float that can be decided, or are to be decided anew. */
static bool leaves_float(const Job *j, Module *m) {
    Left left = {.c = &j->ctx, .any = j->o->redecide.n > 0};
    module_each_graph(m, look_for_float, &left);
    return left.any && can_loosen(m);
}

bool job_completes(const Job *j, Module *m) {
    const Options *o = j->o;
    if (!j->decided_before)
        return false;
    ModuleForm now = module_form(m);
    bool marked = openings_marked(m, NULL) > 0;
    /* what lists decisions (-emit=overrides) lists those that there are */
    bool shows = j->form > FORM_FLOAT && j->form != FORM_BACK && job_is_static(j);
    bool listed = j->form == FORM_FAKE && !o->form && !o->in_place && !module_has_statistics(m);
    if (!now.fake)
        return now.typed && ((job_adds(j) && leaves_float(j, m)) ||
                             (shows && !listed && marked && can_loosen(m)));
    return job_adds(j) || (shows && !listed && marked);
}

/* What loosen cannot turn into decisions. */
static void tell_left_open(const Job *j, Module *m) {
    const Value *first;
    if (openings_marked(m, &first) && first->type.quant && !first->type.tilde)
        diag_note(j->d, first->loc,
                  "types are filled where the model's inputs and outputs are float, none is read "
                  "as another and no branch holds one: else write the scale and zero point");
}

/* What was named is to be decided anew, and cannot be. */
static bool cannot_redecide(const Job *j, Module *m) {
    const Value *at;
    const char *why = why_not_loosen(m, &at);
    if (!at)
        return false;
    diag_error(
        j->d, at->loc,
        "-redecide: '%s' %s, so the types of this model cannot become decisions; -emit=float "
        "gives a model that -calib quantizes anew%s",
        diag_name(j->d, at->name), why,
        at->kind == VALUE_INPUT || value_is_output(at) ? ", with -io=quant outside, too" : "");
    return true;
}

bool step_tell_idle(Job *j, Module *m) {
    if (j->o->redecide.n && job_adds(j) && !j->ctx.open && cannot_redecide(j, m))
        return false;
    j->data_completes = j->decided_before && !options_have_data(j->o) && leaves_float(j, m);
    if (!j->ctx.open)
        tell_left_open(j, m);
    return !j->decided_before || !job_adds(j) || j->ctx.open || warn_of_idle_options(j, m->arena);
}

bool step_find_open(Job *j, Module *m) {
    const Options *o = j->o;
    j->ctx.open = openings_find(m, (const char *const *)o->redecide.items, o->redecide.n,
                                options_have_data(o), &j->ctx);
    j->has_basis = true; /* where there is none for one of them, that is an error of its own */
    j->trained = NEW(m->arena, Trained);
    *j->trained = trained_norm(m);
    return j->ctx.open;
}

/* Where a text is only shown, or runs. */
bool step_tell_open(Job *j, Module *m) {
    const Value *first;
    size_t n = openings_marked(m, &first);
    if (n && *j->o->command)
        diag_warning(j->d, first->loc, "%zu value%s marked '?' count%s as float until %s decided",
                     n, n > 1 ? "s" : "", n > 1 ? "" : "s", n > 1 ? "they are" : "it is");
    else if (n && j->o->output)
        diag_note(j->d, first->loc,
                  "%zu value%s marked '?' stay%s open: -form=fake decides them, -in-place does so "
                  "in this file",
                  n, n > 1 ? "s" : "", n > 1 ? "" : "s");
    return true;
}

typedef struct Names {
    const PassContext *c;
    Buf text;
    size_t n;
} Names;

static void name_decided(Value *v, void *ctx) {
    enum { NAMED = 6 };
    Names *names = ctx;
    if (!v->type.quant || !was_decided(names->c, v) || names->n++ > NAMED)
        return;
    if (names->n > NAMED) {
        buf_text(&names->text, ", ...");
        return;
    }
    buf_fmt(&names->text, "%s%s", names->n > 1 ? ", " : ": ", diag_name(names->c->d, v->name));
    if (v->type.quant->n_scale != 1)
        return;
    buf_text(&names->text, " (");
    quant_print(&names->text, v->type.quant);
    buf_byte(&names->text, ')');
}

bool step_note_completed(Job *j, Module *m) {
    Names names = {.c = &j->ctx, .text = buf_new(m->arena)};
    module_each_value(m, name_decided, &names);
    j->decided = names.n > 0;
    j->completed = names.n;
    j->completed_names = buf_as_str(&names.text);
    return j->decided || j->o->redecide.n || warn_of_idle_options(j, m->arena);
}

void completed_print(const Job *j) {
    if (j->ctx.open && (j->completed || j->o->redecide.n))
        fprintf(stderr, "kept %zu as written, decided %zu" STR_FMT "%s\n", j->ctx.open->kept,
                j->completed, STR_ARG(j->completed_names),
                j->completed ? "" : ": what was named stays float");
}
