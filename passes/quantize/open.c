#include "passes/quantize/open.h"

#include "ir/verify_stat.h"
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/quant_build.h"
#include "passes/quantize/choice.h"

static bool is_mark(const Quant *q) {
    return q && q->kind == QUANT_UNKNOWN;
}

typedef struct Marks {
    size_t n;
    const Value *first;
} Marks;

static void look_for_mark(Value *v, void *ctx) {
    Marks *marks = ctx;
    if (v->type.kind == TYPE_TENSOR && is_mark(v->type.quant) && !marks->n++)
        marks->first = v;
}

size_t openings_marked(Module *m, const Value **first) {
    Marks marks = {0};
    module_each_value(m, look_for_mark, &marks);
    if (first)
        *first = marks.first;
    return marks.n;
}

/* ---- the type that is known of one ---- */

static void take_type(SchemeSetting *s, const Quant *q) {
    s->said = true;
    s->storage = q->storage;
    s->has_range = s->exact_range = q->has_range;
    s->lo = q->lo;
    s->hi = q->hi;
}

/* What a quantization says beside its parameters: their schema, and how many there are. */
static void take_schema(SchemeSetting *s, const Quant *q, bool weight) {
    s->pow2 = quant_is_pow2(q);
    bool sym = quant_is_symmetric(q);
    if (weight || sym)
        s->sym = sym;
    if (!weight)
        return;
    s->has_grain = true;
    s->per_tensor = !q->n_axes;
    s->channel = q->n_axes > 0;
    for (int i = 0; i < q->n_axes; i++)
        if (q->block[i] > 1)
            s->block = q->block[i];
}

/* What the text has: no rule, though it is taken as one. */
static const char *said_as(Arena *a, const Quant *q, bool marked) {
    enum { FEW = 4 };
    Buf b = buf_new(a);
    if (!marked)
        buf_text(&b, "as it was ");
    else if (q->alias.s)
        buf_fmt(&b, "!" STR_FMT " = ", STR_ARG(q->alias));
    else
        buf_text(&b, "~ ");
    quant_print_lists(&b, q, FEW);
    return buf_as_str(&b).s;
}

/* A bias has the scale of the sums that it is added to: there is nothing to decide. It is float
 * where decisions are, unless the text wants a type of its own for it. */
static bool follows(Openings *o, Value *v, bool marked) {
    const Quant *q = v->type.quant;
    bool typed = marked && q->storage && q->storage != ELEM_INT32;
    if (typed || !is_only_bias(o->uses, v))
        return false;
    if (marked)
        diag_note(o->d, q->loc,
                  "'%s' is a bias: it becomes int32 at the scale of its sums by itself, and stays "
                  "float in decisions",
                  diag_name(o->d, v->name));
    v->type.quant = NULL;
    v->type.tilde = false;
    return true;
}

static void add(Openings *o, Value *v, bool marked) {
    if (map_get_at(o->of, v) || follows(o, v, marked))
        return;
    const Quant *q = v->type.quant;
    OpenValue *x = NEW(o->arena, OpenValue);
    Loc loc = q && marked ? q->loc : v->loc;
    *x = (OpenValue){.value = v, .line = q, .marked = marked};
    x->rule = scheme_rule(SCHEME_VALUE, scheme_glob_of(o->arena, v->name).s, loc);
    SchemeSetting *s = &x->rule.set[SCHEME_ITSELF];
    s->loc = loc;
    if (q && q->storage && quant_is_integers(q))
        take_type(s, q);
    if (q && q->kind == QUANT_PARAMS && quant_is_integers(q))
        take_schema(s, q, v->kind == VALUE_CONST);
    x->rule.said_as = q ? said_as(o->arena, q, marked) : NULL;
    x->rule.weak = !marked;
    if (!marked)
        x->rule.flag = "-redecide";
    OpenValue *first = q ? map_get_at(o->of_line, q) : NULL;
    x->of_line = first ? first : x;
    if (first) {
        x->next = first->next;
        first->next = x;
    } else if (q) {
        map_set_at(o->of_line, q, x);
    }
    map_set_at(o->of, v, x);
    ARENA_PUSH(o->arena, o->values, o->n, o->cap, x);
}

/* ---- what -redecide names ---- */

typedef struct Naming {
    Openings *o;
    SchemeRule glob; /* matched as -keep's are, and against names of values and quantizations */
    Map *names;      /* that there are */
    Map *lines;      /* quantizations that are decided anew */
    bool found;
    const Value *never; /* it is named, and nothing is decided of its kind: integers */
} Naming;

static void name_value(Naming *n, Value *v) {
    n->found = true;
    if (v->type.quant)
        map_set_at(n->lines, v->type.quant, v);
    else
        add(n->o, v, false);
}

static bool can_have_one(const Value *v) {
    return type_real_elem(v->type) == ELEM_FLOAT && v->type.kind == TYPE_TENSOR &&
           !type_is_quantized(v->type);
}

static void look_at_value(Value *v, void *ctx) {
    Naming *n = ctx;
    const Quant *q = edit_tilde(v);
    if (!can_have_one(v)) {
        n->never = str_glob(n->glob.pattern, v->name) ? v : n->never;
        return;
    }
    map_set(n->names, v->name, v);
    if (q && q->alias.s)
        map_set(n->names, q->alias, v);
    if (str_glob(n->glob.pattern, v->name) ||
        (q && q->alias.s && str_glob(n->glob.pattern, q->alias)))
        name_value(n, v);
}

/* Of a node its results, and constants that are quantized. */
static void look_at_nodes(Graph *g, void *ctx) {
    Naming *n = ctx;
    FOR_NODES(node, g) {
        map_set(n->names, node->name.n ? node->name : node->op, node);
        map_set(n->names, node->op, node);
        if (!rule_matches_node(&n->glob, node))
            continue;
        for (size_t i = 0; i < node->n_out; i++)
            if (node->out[i] && can_have_one(node->out[i]))
                name_value(n, node->out[i]);
            else if (node->out[i])
                n->never = node->out[i];
        for (size_t i = 0; i < node->n_in; i++)
            if (node->in[i] && node->in[i]->kind == VALUE_CONST && edit_tilde(node->in[i]))
                name_value(n, node->in[i]);
    }
}

static bool find(Naming *n, Module *m, const char *glob) {
    n->found = false;
    n->never = NULL;
    n->glob = scheme_rule(SCHEME_OP_OR_NODE, glob, LOC_NONE);
    module_each_value(m, look_at_value, n);
    module_each_graph(m, look_at_nodes, n);
    return n->found;
}

static bool name_one(Naming *n, Module *m, Str glob, PassContext *c) {
    if (find(n, m, glob.s))
        return true;
    c->misused = true;
    if (n->never)
        return diag_error(c->d, LOC_NONE,
                          "-redecide=%s: no decision stands at '%s', which is %s: only floats are "
                          "quantized",
                          diag_name(c->d, glob), diag_name(c->d, n->never->name),
                          type_text(m->arena, n->never->type));
    diag_error(c->d, LOC_NONE,
               "-redecide: the model has no value, quantization, node or operator '%s'",
               diag_name(c->d, glob));
    const char *read_as = rule_read_as(glob.s);
    if (read_as)
        diag_note(c->d, LOC_NONE, "'%s' is %s once it is read: name that", diag_name(c->d, glob),
                  read_as);
    else
        diag_did_you_mean_key(c->d, LOC_NONE, glob, n->names);
    return false;
}

/* A text that names something as a whole is that glob, whatever commas it has. */
static bool name_all(Naming *n, Module *m, const char *const *globs, size_t n_globs,
                     PassContext *c) {
    bool ok = true;
    Str glob;
    for (size_t i = 0; i < n_globs; i++)
        for (const char *at = find(n, m, globs[i]) ? NULL : globs[i]; str_next_item(&at, &glob);)
            ok = name_one(n, m, arena_str(m->arena, glob), c) && ok;
    return ok;
}

/* ---- all that is open ---- */

bool was_rounded(const Value *v) {
    const Quant *q = edit_tilde(v);
    const Tensor *t = edit_float_const(v);
    if (!t || !t->data || !q)
        return false;
    if (is_mark(q))
        return pass_made(&v->from, PASS_adaround);
    return q->kind == QUANT_PARAMS && quant_is_integers(q) && elem_bits(q->storage) <= 16 &&
           const_is_rounded(t, q);
}

static void collect(Value *v, void *ctx) {
    Naming *n = ctx;
    const Quant *q = edit_tilde(v);
    bool rounded = was_rounded(v);
    n->o->rounded += rounded;
    if (is_mark(q))
        add(n->o, v, true);
    else if (q && map_get_at(n->lines, q))
        add(n->o, v, false);
    else if (v->type.quant)
        n->o->kept++;
    if (v->type.quant && !map_get_at(n->o->of, v))
        map_set_at(n->o->before, v, v);
    OpenValue *x = rounded ? map_get_at(n->o->of, v) : NULL;
    if (x)
        x->rounded = true;
}

/* What is added to a model gets the type that most values have: few kernels take two. Not fewer
 * bits than 8, which somebody chose for the values that have them. */
static const ElemType usual[] = {ELEM_UINT8, ELEM_INT8, ELEM_UINT16, ELEM_INT16};
enum { N_USUAL = sizeof usual / sizeof *usual };

typedef struct Common {
    const Openings *o;
    size_t of[N_USUAL], zero[N_USUAL]; /* how many, and around zero point 0 */
} Common;

static void count_kept(Value *v, void *ctx) {
    Common *c = ctx;
    const Quant *q = edit_tilde(v);
    if (v->kind == VALUE_CONST || !q || q->kind != QUANT_PARAMS || !map_get_at(c->o->before, v))
        return;
    for (size_t i = 0; i < N_USUAL; i++)
        if (q->storage == usual[i]) {
            c->of[i]++;
            c->zero[i] += quant_zp_all_zero(q);
        }
}

static void find_common(Openings *o, Module *m) {
    Common c = {.o = o};
    module_each_value(m, count_kept, &c);
    size_t most = 0;
    for (size_t i = 0; i < N_USUAL; i++)
        if (c.of[i] > most) {
            most = c.of[i];
            o->storage = usual[i];
            o->sym = elem_is_signed(usual[i]) && c.zero[i] == c.of[i];
        }
}

Openings *openings_find(Module *m, const char *const *globs, size_t n, bool rest, PassContext *c) {
    Openings *o = NEW(m->arena, Openings);
    *o = (Openings){.arena = m->arena,
                    .uses = uses_new(m),
                    .d = c->d,
                    .of = map_new(m->arena),
                    .of_line = map_new(m->arena),
                    .taken = map_new(m->arena),
                    .rest = rest,
                    .before = map_new(m->arena)};
    Naming naming = {.o = o, .names = map_new(m->arena), .lines = map_new(m->arena)};
    if (!name_all(&naming, m, globs, n, c))
        return NULL;
    module_each_value(m, collect, &naming);
    find_common(o, m);
    for (size_t i = 0; i < o->n; i++) {
        Value *v = o->values[i]->value;
        v->type.quant = NULL;
        v->type.tilde = false;
    }
    return o;
}

OpenValue *opening_of(const PassContext *c, const Value *v) {
    return c->open ? map_get_at(c->open->of, v) : NULL;
}

bool is_open(const PassContext *c, const Value *v) {
    return !c->open || c->open->rest || opening_of(c, v);
}

bool was_decided(const PassContext *c, const Value *v) {
    return !c->open || (v->type.quant && !map_get_at(c->open->before, v));
}

bool result_is_written(const PassContext *c, const Node *n) {
    return c->open && n->n_out && n->out[0] && map_get_at(c->open->before, n->out[0]);
}

/* ---- what was decided ---- */

/* Whether it is the first of its line. Each weight has parameters of its own, whatever line it
 * shares, and those that come later go by their own names. */
static bool takes_line(const PassContext *c, const OpenValue *o, const Quant *line) {
    if (!line || !line->alias.s)
        return false;
    if (!map_get_at(c->open->taken, line)) {
        map_set_at(c->open->taken, line, o->value);
        return true;
    }
    diag_note(c->d, o->value->loc,
              "'%s' gets parameters of its own: !%s is open for a weight and for others",
              diag_name(c->d, o->value->name), diag_name(c->d, line->alias));
    return false;
}

static bool rules_name(const Scheme *s, const Quant *line) {
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < SCHEME_ROLES; k++)
            if (s->rules[i].set[k].line == line)
                return true;
    return false;
}

/* The line that a value stands in again, or NULL: one that a rule names means what it did. */
static const Quant *line_again(const PassContext *c, const Module *m, const OpenValue *o) {
    if (!o->line || !o->line->alias.s || !rules_name(&m->rules, o->line))
        return o->line;
    diag_note(c->d, o->value->loc,
              "'%s' gets a quantization of its own: !%s stays as it is, as a rule names it",
              diag_name(c->d, o->value->name), diag_name(c->d, o->line->alias));
    return NULL;
}

const Quant *opening_named(const PassContext *c, Module *m, OpenValue *o, Quant *q, bool apart) {
    const Quant *line = apart ? NULL : line_again(c, m, o);
    bool takes = takes_line(c, o, line);
    q->alias = takes ? line->alias : o->value->name;
    q->loc = o->line ? o->line->loc : q->loc;
    if (o->value->kind != VALUE_CONST)
        o->made = q;
    for (size_t i = 0; takes && i < m->n_quants; i++)
        if (m->quants[i] == line) {
            m->quants[i] = q;
            return q;
        }
    module_add_quant(m, q);
    return q;
}

/* A line that nothing has any more would print as it was. One that nothing had goes where a value
 * that is decided here takes its name. */
static void drop_lines(Module *m, Map *lines) {
    Map *names = map_new(m->arena);
    for (size_t i = m->n_quants; i-- > 0;)
        if (m->quants[i]->alias.s && !map_set(names, m->quants[i]->alias, m->quants[i]))
            map_set_at(lines, m->quants[i], m->quants[i]);
    drop_unused_quants_among(m, lines);
}

typedef enum { LEFT_NOT, LEFT_UNKNOWN, LEFT_INFINITE, LEFT_UNTAKEN } Left;

/* Why what has to be decided was left as it is. */
static Left why_left(const OpenValue *x) {
    float min, max;
    bool known = edit_range(x->value, &min, &max);
    if (x->value->type.quant || !(x->marked || (x->line && !known)))
        return LEFT_NOT;
    if (known)
        return LEFT_UNTAKEN;
    return edit_float_const(x->value) ? LEFT_INFINITE : LEFT_UNKNOWN;
}

static bool none_left(const Openings *o, PassContext *c, Left why) {
    static const char *const words[] = {
        [LEFT_UNKNOWN] = "nothing is known of it: give data with -calib=PATH, a line `stat` with "
                         "its min and max, or its scale and zero point",
        [LEFT_INFINITE] = "a number of it is NaN or infinite: make it finite, or leave out what "
                          "its ~ says",
        [LEFT_UNTAKEN] = "no operator takes it quantized: leave out what its ~ says"};
    const OpenValue *first = NULL;
    size_t left = 0;
    for (size_t i = 0; i < o->n; i++)
        if (why_left(o->values[i]) == why && !left++)
            first = o->values[i];
    if (!first)
        return true;
    const Value *v = first->value;
    diag_error(c->d, first->rule.loc, "'%s'%s is to be quantized, and %s", diag_name(c->d, v->name),
               arena_others(o->arena, " (and ", left - 1, ")"), words[why]);
    if (why == LEFT_UNKNOWN && v->stat)
        note_no_range(v, c->d);
    return false;
}

bool openings_close(Module *m, PassContext *c) {
    bool ok = true;
    drop_lines(m, c->lines);
    for (Left why = LEFT_UNKNOWN; why <= LEFT_UNTAKEN; why++)
        ok = none_left(c->open, c, why) && ok;
    return ok;
}
