#include "compiler/placement.h"
#include "passes/quantize/placement.h"
#include "passes/recipe.h"

static const char *const names[] = {
    [PLACEMENT_AUTO] = "auto", [PLACEMENT_ALL] = "all", [PLACEMENT_PRODUCTS] = "products"};
enum { N_NAMES = sizeof names / sizeof *names };

/* False where it is none of them, which is an error; -placement= has been checked. */
static bool find(const Job *j, const SchemeWord *said, Placement *found) {
    for (size_t i = 0; i < N_NAMES; i++)
        if (str_is(said->text, names[i])) {
            *found = (Placement)i;
            return true;
        }
    diag_error(j->d, said->loc, "a placement is auto, products or all, not '%s'",
               diag_name(j->d, said->text));
    diag_did_you_mean(j->d, said->loc, said->text, names, N_NAMES);
    return false;
}

bool placement_is_open(const Job *j) {
    const TargetPage *t = j->ctx.target;
    return !t->no_floats && !j->o->integer_only && !t->forms[TARGET_FORM_C];
}

static bool can_follow(const Job *j, Placement p) {
    return placement_is_open(j) || (p == PLACEMENT_PRODUCTS && j->ctx.target->before.n);
}

/* Who computes on integers all that it can. */
static const char *who(const Job *j) {
    const TargetPage *t = j->ctx.target;
    return t->forms[TARGET_FORM_C] || !j->o->integer_only ? t->runtime : "with -integer-only C";
}

bool placement_init(Job *j) {
    SchemeWord said = {j->o->placement ? str_from(j->o->placement) : STR_NONE, LOC_NONE};
    Placement p = PLACEMENT_AUTO;
    if (!said.text.s)
        return true;
    if (!find(j, &said, &p))
        return false;
    return p != PLACEMENT_PRODUCTS || can_follow(j, p) ||
           diag_error(j->d, LOC_NONE,
                      "-placement=products is for runtimes: %s computes on integers all that it "
                      "can",
                      who(j));
}

bool placement_take(Job *j) {
    const SchemeWord *said = &j->ctx.scheme.whole[SCHEME_PLACEMENT];
    j->ctx.placement = PLACEMENT_AUTO;
    return !said->text.s || find(j, said, &j->ctx.placement);
}

/* Why quantizers stand everywhere, though it is to be decided; NULL: they do not. */
static const char *why_everywhere(const Job *j) {
    const PassContext *c = &j->ctx;
    if (placing_of(c) != PLACING_EVERYWHERE)
        return NULL;
    if (!c->float_outputs)
        return "with -io=quant";
    if (recipe_of(c) != RECIPE_NONE)
        return "with a recipe";
    return c->target->n_fusions ? "in a text without -target=NAME, which is for all runtimes"
                                : "where the page of a target does not say what it fuses";
}

/* How it is spelled where it is said. */
static const char *spelled(const SchemeWord *said) {
    return said->loc.source ? "placement " : "-placement=";
}

static void warn_of_one_place(const Job *j, const SchemeWord *said) {
    diag_warning(j->d, said->loc,
                 "%s" STR_FMT " has no effect: %s computes on integers all that it can",
                 spelled(said), STR_ARG(said->text), who(j));
}

static void warn_of_overruled(const Job *j, const SchemeWord *said) {
    if (j->o->placement && !str_is(said->text, j->o->placement))
        diag_warning(j->d, said->loc,
                     "-placement=%s has no effect: the scheme says placement " STR_FMT,
                     j->o->placement, STR_ARG(said->text));
}

void warn_of_idle_placement(const Job *j) {
    const SchemeWord *said = &j->ctx.scheme.whole[SCHEME_PLACEMENT];
    if (!said->text.s)
        return;
    warn_of_overruled(j, said);
    if (j->o->dynamic || j->o->weight_only) {
        diag_warning(j->d, said->loc, "placement " STR_FMT " has no effect with -%s",
                     STR_ARG(said->text), j->o->dynamic ? "dynamic" : "weight-only");
        return;
    }
    if (!can_follow(j, j->ctx.placement)) {
        warn_of_one_place(j, said);
        return;
    }
    bool asked =
        j->ctx.placement == PLACEMENT_AUTO && placement_is_open(j) && options_have_data(j->o);
    const char *why = asked ? why_everywhere(j) : NULL;
    if (why)
        diag_warning(j->d, said->loc,
                     "%s" STR_FMT " has no effect %s: quantizers stand wherever %s computes on "
                     "integers",
                     spelled(said), STR_ARG(said->text), why, j->ctx.target->runtime);
}
