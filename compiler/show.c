/* qxc show MODEL [GLOB]: of the text that -emit=qir would print, the nodes that the glob names and
 * those beside them, with their quantizations and constants. */
#include "backend/qir/qir_write.h"
#include "compiler/session.h"
#include "passes/edit.h"
#include "passes/quantize/choice.h"

enum { ELIDE_LARGER = 64 }; /* bytes of a constant */

typedef struct Piece { /* a statement of the text */
    size_t begin, end;
} Piece;

typedef struct Show {
    Session *session;
    Module *m;
    SchemeRule glob;
    bool *nodes, *consts; /* by id: to be shown */
    bool *named;          /* nodes that the glob names */
    bool found, outside;  /* something is named; and reads an input, or is an output */
    Map *names;
    const Uses *uses;
    Buf text;
    Piece *pieces; /* in the text's order */
    size_t n_pieces, cap_pieces;
} Show;

/* ---- which ---- */

/* Values and quantizations are named as they are written, %name and !name, or without their sign.
 */
static bool names_value(const Show *s, const Value *v) {
    const char *glob = s->glob.pattern;
    const Quant *q = edit_tilde(v);
    if (str_glob(*glob == '%' ? glob + 1 : glob, v->name))
        return true;
    return q && q->alias.s && str_glob(*glob == '!' ? glob + 1 : glob, q->alias);
}

static void choose_node(Show *s, const Node *n) {
    s->named[n->id] = s->found = true;
}

/* What is named with a result is its node; with an input or a constant, the nodes that read it. */
static void choose_value(Value *v, void *ctx) {
    Show *s = ctx;
    const Quant *q = edit_tilde(v);
    const Use *use;
    map_set(s->names, v->name, v);
    if (q && q->alias.s)
        map_set(s->names, q->alias, v);
    if (!names_value(s, v))
        return;
    s->found = true;
    if (v->def)
        choose_node(s, v->def);
    s->consts[v->id] = v->kind == VALUE_CONST;
    for (size_t i = 0, n = v->def ? 0 : uses_of(s->uses, v, &use); i < n; i++)
        if (use[i].node)
            choose_node(s, use[i].node);
}

static void choose(Graph *g, void *ctx) {
    Show *s = ctx;
    FOR_NODES(n, g) {
        map_set(s->names, n->name.n ? n->name : n->op, n);
        map_set(s->names, n->op, n);
        if (rule_matches_node(&s->glob, n))
            choose_node(s, n);
    }
}

/* What makes an operand of a named node, what reads a result, and its constants. */
static void choose_beside(Graph *g, void *ctx) {
    Show *s = ctx;
    FOR_NODES(n, g) {
        s->nodes[n->id] = s->nodes[n->id] || s->named[n->id];
        for (size_t i = 0; i < n->n_in; i++) {
            const Value *v = n->in[i];
            if (!v)
                continue;
            if (v->def && s->named[n->id])
                s->nodes[v->def->id] = true;
            if (v->def && s->named[v->def->id])
                s->nodes[n->id] = true;
            if (v->kind == VALUE_CONST && s->named[n->id])
                s->consts[v->id] = true;
        }
    }
}

/* ---- where they stand ---- */

/* Numbers in place of places: nodes first, then values. Nothing is reported of them any more. */
static void number_nodes(Graph *g, void *ctx) {
    (void)ctx;
    FOR_NODES(n, g)
    n->loc = (Loc){.begin = n->id};
}

static void number_value(Value *v, void *ctx) {
    const Show *s = ctx;
    v->loc = (Loc){.begin = s->m->n_nodes + v->id};
}

static size_t line_begin(const Show *s, size_t at) {
    while (at && s->text.p[at - 1] != '\n')
        at--;
    return at;
}

static size_t indent_of(const Show *s, size_t line) {
    size_t n = 0;
    while (line + n < s->text.n && s->text.p[line + n] == ' ')
        n++;
    return n;
}

static size_t next_line(const Show *s, size_t at) {
    const char *nl = at < s->text.n ? memchr(s->text.p + at, '\n', s->text.n - at) : NULL;
    return nl ? (size_t)(nl - s->text.p) + 1 : s->text.n;
}

/* Lines that go on with a statement stand further right than it begins. */
static size_t statement_end(const Show *s, size_t line) {
    size_t indent = indent_of(s, line), end = next_line(s, line);
    while (end < s->text.n && s->text.p[end] != '\n' && indent_of(s, end) > indent)
        end = next_line(s, end);
    return end;
}

/* Nothing is shown of a function but its nodes. */
static Loc of_no_node(const Module *m) {
    return (Loc){.begin = m->n_nodes + m->n_values};
}

static void mark(void *ctx, Loc at, size_t begin, size_t end) {
    Show *s = ctx;
    (void)end;
    bool is_node = at.begin < s->m->n_nodes;
    if (at.begin >= of_no_node(s->m).begin)
        return;
    bool wanted = is_node ? s->nodes[at.begin] : s->consts[at.begin - s->m->n_nodes];
    if (!wanted)
        return;
    Piece p = {.begin = begin};
    ARENA_PUSH(s->m->arena, s->pieces, s->n_pieces, s->cap_pieces, p);
}

/* ---- the quantizations that they name ---- */

static bool ends_name(char c) {
    return strchr(" \t\n[(),>=", c) != NULL;
}

/* Behind the string that begins at `at`. */
static size_t string_end(const Show *s, size_t at) {
    for (at++; at < s->text.n && s->text.p[at] != '"'; at++)
        at += s->text.p[at] == '\\';
    return at + 1;
}

/* The word from `at` on, !name or !"name". */
static Str word_at(const Show *s, size_t at) {
    size_t n = 1;
    if (at + 1 < s->text.n && s->text.p[at + 1] == '"')
        return (Str){s->text.p + at, string_end(s, at + 1) - at};
    while (at + n < s->text.n && !ends_name(s->text.p[at + n]))
        n++;
    return (Str){s->text.p + at, n};
}

static void note_quants(const Show *s, const Piece *p, Map *quants) {
    for (size_t i = p->begin; i < p->end; i++)
        if (s->text.p[i] == '!') {
            Str word = word_at(s, i);
            map_set(quants, word, quants);
            i += word.n - 1;
        } else if (s->text.p[i] == '"') {
            i = string_end(s, i) - 1;
        }
}

/* The line that names inputs and outputs, up to its brace. */
static Piece graph_line(const Show *s) {
    static const char word[] = "graph @";
    size_t line = 0;
    while (line < s->text.n &&
           (s->text.n - line < sizeof word || memcmp(s->text.p + line, word, sizeof word - 1) != 0))
        line = next_line(s, line);
    size_t end = next_line(s, line);
    while (end < s->text.n && s->text.p[end - 2] != '{')
        end = next_line(s, end);
    return (Piece){line, end};
}

/* An operand of what is shown that the graph's line names, or a result. */
static bool is_outside(const Show *s, const Value *v) {
    const Graph *g = s->m->graph;
    bool is = false;
    for (size_t i = 0; v && i < g->n_in; i++)
        is = is || g->in[i] == v;
    for (size_t i = 0; v && i < g->n_out; i++)
        is = is || g->out[i] == v;
    return is;
}

static void look_outside(Graph *g, void *ctx) {
    Show *s = ctx;
    FOR_NODES(n, g) {
        for (size_t i = 0; s->nodes[n->id] && i < n->n_in; i++)
            s->outside = s->outside || is_outside(s, n->in[i]);
        for (size_t i = 0; s->nodes[n->id] && i < n->n_out; i++)
            s->outside = s->outside || is_outside(s, n->out[i]);
    }
}

static bool put_quants(const Show *s, const Map *quants) {
    static const char word[] = "quant ";
    bool any = false;
    for (size_t line = 0; line < s->text.n; line = statement_end(s, line)) {
        size_t name = line + sizeof word - 1;
        if (s->text.n - line < sizeof word ||
            memcmp(s->text.p + line, word, sizeof word - 1) != 0 ||
            !map_get(quants, word_at(s, name)))
            continue;
        fwrite(s->text.p + line, 1, statement_end(s, line) - line, stdout);
        any = true;
    }
    return any;
}

static void put_pieces(const Show *s) {
    Map *quants = map_new(s->m->arena);
    for (size_t i = 0; i < s->n_pieces; i++)
        note_quants(s, &s->pieces[i], quants);
    Piece graph = graph_line(s);
    if (s->outside)
        note_quants(s, &graph, quants);
    if (put_quants(s, quants))
        putchar('\n');
    size_t shown = 0;
    if (s->outside) {
        fwrite(s->text.p + graph.begin, 1, graph.end - graph.begin, stdout);
        shown = graph.end;
    }
    for (size_t i = 0; i < s->n_pieces; i++) {
        const Piece *p = &s->pieces[i];
        if (p->begin < shown) /* a body of a node that was shown whole */
            continue;
        if (shown && p->begin > shown)
            puts("  ...");
        fwrite(s->text.p + p->begin, 1, p->end - p->begin, stdout);
        shown = p->end;
    }
}

static ExitCode show(Show *s) {
    Arena *a = s->m->arena;
    s->nodes = NEW_ARRAY(a, bool, s->m->n_nodes);
    s->named = NEW_ARRAY(a, bool, s->m->n_nodes);
    s->consts = NEW_ARRAY(a, bool, s->m->n_values);
    s->names = map_new(a);
    s->text = buf_new(a);
    s->uses = uses_new(s->m);
    module_each_value(s->m, choose_value, s);
    module_each_graph(s->m, choose, s);
    if (!s->found) {
        Str glob = str_from(s->glob.pattern);
        diag_error(s->session->d, LOC_NONE,
                   "the model has no node, operator, value or quantization '%s'",
                   diag_name(s->session->d, glob));
        diag_did_you_mean_key(s->session->d, LOC_NONE, glob, s->names);
        return EXIT_USAGE;
    }
    module_each_graph(s->m, choose_beside, s);
    module_each_graph(s->m, look_outside, s);
    module_each_graph(s->m, number_nodes, s);
    module_each_value(s->m, number_value, s);
    for (size_t i = 0; i < s->m->n_functions; i++)
        s->m->functions[i]->loc = of_no_node(s->m);
    QirWriteOptions look = {
        .plain = true, .elide = true, .elide_larger = ELIDE_LARGER, .mark = mark, .mark_ctx = s};
    qir_print(s->m, &s->text, &look);
    for (size_t i = 0; i < s->n_pieces; i++) {
        s->pieces[i].begin = line_begin(s, s->pieces[i].begin);
        s->pieces[i].end = statement_end(s, s->pieces[i].begin);
    }
    if (!s->n_pieces)
        diag_warning(s->session->d, LOC_NONE, "no node reads '%s'",
                     diag_name(s->session->d, str_from(s->glob.pattern)));
    put_pieces(s);
    return EXIT_DONE;
}

ExitCode cmd_show(Session *s) {
    ExitCode code;
    Job j;
    if (s->o.inputs.n < 1 || s->o.inputs.n > 2) {
        diag_error(s->d, LOC_NONE, "show wants a model and a glob: qxc show model.qir '*conv*'");
        return EXIT_USAGE;
    }
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    Module *m = session_read(s, 0, &code);
    if (!m)
        return code;
    if (!job_compile(&j, m))
        return job_failure(&j);
    const char *glob = s->o.inputs.n == 2 ? s->o.inputs.items[1] : "*";
    Show to = {.session = s, .m = m, .glob = scheme_rule(SCHEME_OP_OR_NODE, glob, LOC_NONE)};
    return show(&to);
}
