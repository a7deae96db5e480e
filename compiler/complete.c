/* A model that is decided in part: what it leaves open is decided, the rest is kept. The steps of
 * it that are no passes, and the words about it. */
#include "compiler/complete.h"
#include "compiler/doubtful.h"
#include "compiler/lost_marks.h"
#include "compiler/steps.h"
#include "compiler/without_effect.h"

#include "passes/lower/integer_rule.h"
#include "passes/quant_build.h"
#include "passes/quantize/choice.h"
#include "passes/quantize/decide.h"
#include "passes/quantize/loosen.h"
#include "passes/quantize/open.h"
#include "passes/quantize/vanished.h"
#include "passes/quantize/weight_error.h"

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

static bool is_left(const Value *v) {
    return v && !v->type.quant && type_real_elem(v->type) == ELEM_FLOAT;
}

/* Biases follow by themselves. */
static bool reads_left(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (is_left(n->in[i]) && (quant_rule_is_data(&n->def->quant, i) || takes_weight(n, i)))
            return true;
    return false;
}

/* An operator that could be integer, and has a float operand or result. */
static void look_for_float(Graph *g, void *ctx) {
    Left *left = ctx;
    FOR_NODES(n, g) {
        bool could = n->n_out && !why_never_integer(n) && node_conversion(n) == CONVERT_NONE &&
                     (left->c->no_floats || !op_prefers_float(n)) && !choice_why_kept(left->c, n);
        left->any = left->any || (could && (is_left(n->out[0]) || reads_left(n)));
    }
}

bool job_leaves_float(const Job *j, Module *m) {
    Left left = {.c = &j->ctx, .any = j->o->redecide.n > 0};
    module_each_graph(m, look_for_float, &left);
    return left.any && (can_loosen(m) || module_is_fake(m));
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
        return now.typed && ((job_adds(j) && job_leaves_float(j, m)) ||
                             (shows && !listed && marked && can_loosen(m)));
    return job_adds(j) || (shows && !listed && marked);
}

/* What loosen cannot turn into decisions. */
static void tell_left_open(const Job *j, Module *m) {
    const Value *first;
    if (!openings_marked(m, &first) || !first->type.quant || first->type.tilde)
        return;
    if (first->kind == VALUE_CONST)
        diag_note(j->d, first->loc,
                  "'%s' holds integers, which have no scale where that is left open: write it "
                  "again, or open the type in the text that -form=fake gives, where constants are "
                  "real numbers",
                  diag_name(j->d, first->name));
    else
        diag_note(j->d, first->loc,
                  "types are filled where the model's inputs and outputs are float, none is read "
                  "as another and no branch holds one: else write the scale and zero point");
}

/* What `option` wants as decisions stays types. */
static bool cannot_loosen(const Job *j, Module *m, const char *option) {
    const Value *at;
    const char *why = why_not_loosen(m, &at);
    if (!why)
        return false;
    diag_error(j->d, at->loc,
               "%s: '%s' %s, so the types of this model cannot become decisions; -emit=float "
               "gives a model that -calib quantizes anew%s",
               option, diag_name(j->d, at->name), why,
               at->kind == VALUE_INPUT || value_is_output(at) ? ", with -io=quant outside, too"
                                                              : "");
    return true;
}

bool step_tell_idle(Job *j, Module *m) {
    if (j->o->redecide.n && job_adds(j) && !j->ctx.open && cannot_loosen(j, m, "-redecide"))
        return false;
    ModuleForm now = module_form(m);
    j->data_completes = j->decided_before && !options_have_data(j->o) && job_leaves_float(j, m);
    j->only_floats = j->decided_before && !now.fake && !now.typed && !form_is_spelled(now);
    j->anew = now.fake || can_loosen(m);
    if (!j->ctx.open)
        tell_left_open(j, m);
    return !j->decided_before || !job_adds(j) || j->ctx.open || warn_of_idle_options(j, m->arena);
}

bool step_types_can_be_decisions(Job *j, Module *m) {
    return !cannot_loosen(j, m, "-form=fake");
}

bool step_note_lines(Job *j, Module *m) {
    j->ctx.lines = quants_in_use(m);
    return true;
}

bool step_note_marks(Job *j, Module *m) {
    j->marks = marks_note(m);
    return true;
}

bool step_find_open(Job *j, Module *m) {
    const Options *o = j->o;
    if (j->marks)
        warn_of_lost_marks(j->marks, m, j->d);
    j->ctx.open = openings_find(m, (const char *const *)o->redecide.items, o->redecide.n,
                                options_have_data(o), &j->ctx);
    j->has_basis = true; /* where there is none for one of them, that is an error of its own */
    j->trained = NEW(m->arena, Trained);
    *j->trained = trained_norm(m);
    return j->ctx.open;
}

/* Where a text is only shown, or runs as training sees it. */
bool step_tell_open(Job *j, Module *m) {
    const Value *first;
    size_t n = openings_marked(m, &first);
    bool runs = j->o->command->id != COMMAND_compile;
    if (n && runs && !j->o->form)
        diag_warning(j->d, first->loc, "%zu value%s marked '?' count%s as float until %s decided",
                     n, n > 1 ? "s" : "", n > 1 ? "" : "s", n > 1 ? "they are" : "it is");
    else if (n && !runs && j->o->output)
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

/* How many different numbers a scale of `q` has at most; more than `most` are not counted. */
static size_t numbers_of(Arena *a, const Tensor *t, const Quant *q, size_t most) {
    float *seen = NEW_ARRAY(a, float, q->n_scale *most);
    size_t *n = NEW_ARRAY(a, size_t, q->n_scale), max = 0;
    for (size_t i = 0; i < t->count && max <= most; i++) {
        size_t e = q->n_scale == 1 ? 0 : quant_index(q, t->rank, t->dims, i), k = 0;
        float x = (float)tensor_float(t, i);
        while (k < n[e] && seen[e * most + k] != x)
            k++;
        if (k == n[e] && n[e]++ < most)
            seen[e * most + k] = x;
        max = n[e] > max ? n[e] : max;
    }
    return max;
}

/* Whether a constant got more integers than it was rounded to. Where a mark stands for its
 * quantization, few numbers tell it. */
static bool is_finer(Arena *a, const OpenValue *o) {
    enum { FEW = 16 };
    const Quant *q = o->value->type.quant, *was = o->line;
    if (!o->rounded || !q || !quant_is_integers(q))
        return false;
    int64_t steps = quant_hi(q) - quant_lo(q);
    return o->marked ? steps >= FEW && numbers_of(a, o->value->data, q, FEW) <= FEW
                     : steps > quant_hi(was) - quant_lo(was);
}

/* More integers give back nothing of what rounding took. */
static void warn_of_rounded(const Job *j) {
    const Openings *open = j->ctx.open;
    const OpenValue *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < open->n; i++) {
        const OpenValue *o = open->values[i];
        if (!is_finer(open->arena, o))
            continue;
        first = first ? first : o;
        n++;
    }
    if (!first)
        return;
    diag_warning(j->d, first->value->loc,
                 "'%s'%s was rounded to %s before, and this model has no other numbers of "
                 "it: more bits do not give back what was lost; -redecide='*' -weights-from=MODEL "
                 "decides with the numbers of MODEL, the float model that this was decided of",
                 diag_name(j->d, first->value->name),
                 arena_others(open->arena, " (and ", n - 1, ")"),
                 first->marked ? "few bits" : elem_name(first->line->storage));
}

typedef struct Rounded {
    const Value *first;
    size_t n;
} Rounded;

static void look_for_rounded(Value *v, void *ctx) {
    Rounded *r = ctx;
    if (v->kind == VALUE_CONST && v->type.quant && v->type.tilde && weight_is_few(v->type.quant) &&
        was_rounded(v))
        r->first = r->n++ ? r->first : v;
}

/* Decisions look as if their constants were the float model's. */
bool step_note_rounded(Job *j, Module *m) {
    Rounded r = {0};
    module_each_value(m, look_for_rounded, &r);
    if (r.n)
        diag_note(j->d, r.first->loc,
                  "'%s'%s was rounded to few bits before: the float model has those numbers, and "
                  "-weights-from=MODEL others, of the model that this was decided of",
                  diag_name(j->d, r.first->name), arena_others(m->arena, " (and ", r.n - 1, ")"));
    return true;
}

static void look_for_integer(Graph *g, void *ctx) {
    bool *integer = ctx;
    FOR_NODES(n, g)
    integer[n->id] = n->def && n->n_out && n->out[0] && n->out[0]->type.quant &&
                     !integer_rule(n, NULL, 0, g->module->mute);
}

/* What is better left float is integer all the same where the text says so of all its values. */
static void forget_decided(Job *j, Module *m) {
    bool *integer = NEW_ARRAY(m->arena, bool, m->n_nodes);
    module_each_graph(m, look_for_integer, integer);
    pass_forget_remarks(&j->ctx, integer);
}

bool step_note_completed(Job *j, Module *m) {
    Names names = {.c = &j->ctx, .text = buf_new(m->arena)};
    module_each_value(m, name_decided, &names);
    j->decided = names.n > 0;
    j->completed = names.n;
    j->completed_names = buf_as_str(&names.text);
    warn_of_rounded(j);
    tell_vanished(&j->ctx, m);
    forget_decided(j, m);
    if (j->form <= FORM_FAKE)
        job_leave_word(j, m);
    return j->decided || j->o->redecide.n || warn_of_idle_options(j, m->arena);
}

void completed_print(const Job *j) {
    if (j->ctx.open && (j->completed || j->o->redecide.n))
        fprintf(stderr, "kept %zu as written, decided %zu" STR_FMT "%s\n", j->ctx.open->kept,
                j->completed, STR_ARG(j->completed_names),
                j->completed ? "" : ": what was named stays float");
}
