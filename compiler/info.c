/* qxc info MODEL: what a model is before anything is done with it, and what to do next. Everything
 * is collected as JSON first (docs/info.md); the text shows the same. */
#include <stdlib.h>

#include "compiler/complete.h"
#include "compiler/info_next.h"
#include "compiler/json_print.h"
#include "compiler/list_ops.h"
#include "compiler/preset.h"
#include "exec/exec.h"
#include "exec/fixed_shapes.h"
#include "exec/fold.h"
#include "exec/specialise.h"
#include "passes/edit.h"

enum { INFO_SCHEMA = 1 }; /* of the JSON; another number where a field changes its meaning */

typedef struct Info {
    Session *s;
    Module *m;
    Library *library;
    json_t *root;
    Map *rows; /* operator with its domain -> its row */
    json_t *operators;
    size_t elements, bytes;       /* of constants */
    size_t products, on_integers; /* nodes that multiply and accumulate */
    size_t weights_alone;         /* those of float data and quantized weights */
    bool decided, typed, spelled, statistics;
} Info;

static json_t *exact(const Info *i, Str s) {
    return json_name(i->m->arena, s);
}

static json_t *count(size_t n) {
    return json_integer((json_int_t)n);
}

/* ---- the file ---- */

typedef struct Spelled {
    bool qoperators, dynamic, weights; /* weights: of products with float data */
} Spelled;

static void look_for_spellings(Graph *g, void *ctx) {
    Spelled *s = ctx;
    FOR_NODES(n, g) {
        s->qoperators |= qop_find(n->domain, n->op) != NULL;
        s->dynamic |= node_is(n, "DynamicQuantizeLinear") ||
                      node_is_in(n, "com.microsoft", "DynamicQuantizeMatMul") ||
                      node_is_in(n, "com.microsoft", "DynamicQuantizeLSTM");
        s->weights |= node_is_in(n, "com.microsoft", "MatMulNBits") ||
                      node_is_in(n, "com.microsoft", "GatherBlockQuantized");
    }
}

static const char *how_it_came(Info *i) {
    ModuleForm f = module_form(i->m);
    i->decided = f.fake;
    i->typed = f.typed;
    i->spelled = form_is_spelled(f) || f.annotated;
    i->statistics = module_has_statistics(i->m);
    Spelled s = {0};
    module_each_graph(i->m, look_for_spellings, &s);
    return f.typed            ? "integers in types"
           : f.fake           ? "decisions (float ~)"
           : f.scaling        ? "scaling spelled out as Round and Clip"
           : f.qonnx          ? "QONNX"
           : s.qoperators     ? "QOperators"
           : s.dynamic        ? "dynamic quantization"
           : s.weights        ? "operators on quantized weights"
           : f.onnx_quantized ? "QDQ"
           : f.integers       ? "operators of floats on plain integers"
           : f.annotated      ? "float with quantization annotations"
           : i->statistics    ? "float with statistics"
                              : "float";
}

static void add_file(Info *i) {
    const Module *m = i->m;
    json_t *opsets = json_object();
    for (size_t k = 0; k < m->n_imports; k++)
        json_object_set_new(opsets, diag_name(i->s->d, m->imports[k].domain),
                            json_integer(m->imports[k].version));
    json_object_set_new(i->root, "schema_version", json_integer(INFO_SCHEMA));
    json_object_set_new(i->root, "model", exact(i, str_from(path_base(i->s->o.inputs.items[0]))));
    json_object_set_new(i->root, "format", json_string(i->s->is_text ? "qir" : "onnx"));
    json_object_set_new(i->root, "producer", exact(i, m->producer_name));
    json_object_set_new(i->root, "producer_version", exact(i, m->producer_version));
    json_object_set_new(i->root, "opsets", opsets);
    json_object_set_new(i->root, "came", json_string(how_it_came(i)));
}

/* ---- inputs and outputs ---- */

static json_t *port(const Info *i, const Value *v) {
    json_t *p = json_object();
    float min, max;
    json_object_set_new(p, "name", exact(i, v->name));
    json_object_set_new(p, "type", exact(i, str_from(type_text(i->m->arena, v->type))));
    if (v->type.kind == TYPE_TENSOR) {
        json_object_set_new(p, "element", json_string(elem_name(v->type.elem)));
        json_object_set_new(p, "shape",
                            v->type.rank < 0 ? json_null() : json_dims(i->m->arena, v->type));
    }
    if (v->stat && edit_range(v, &min, &max)) {
        json_object_set_new(p, "min", json_real((double)min));
        json_object_set_new(p, "max", json_real((double)max));
    }
    return p;
}

static void add_ports(Info *i) {
    json_t *in = json_array(), *out = json_array();
    const Graph *g = i->m->graph;
    for (size_t k = 0; k < g->n_in; k++)
        if (!g->in[k]->data)
            json_array_append_new(in, port(i, g->in[k]));
    for (size_t k = 0; k < g->n_out; k++)
        json_array_append_new(out, port(i, g->out[k]));
    json_object_set_new(i->root, "inputs", in);
    json_object_set_new(i->root, "outputs", out);
}

/* ---- operators and numbers ---- */

static bool is_own(const Module *m, const Node *n) {
    for (size_t k = 0; k < m->n_functions; k++)
        if (str_eq(m->functions[k]->name, n->op) &&
            domain_equal(m->functions[k]->domain, n->domain))
            return true;
    return false;
}

static void count_node(Info *i, const Node *n) {
    Str name = n->domain.n ? arena_strf(i->m->arena, STR_FMT "::" STR_FMT, STR_ARG(n->domain),
                                        STR_ARG(n->op))
                           : n->op;
    json_t *row = map_get(i->rows, name);
    if (!row) {
        OpFacts is = op_facts(i->library, n->domain, n->op);
        bool own = !is.runs && is_own(i->m, n);
        row = json_object();
        json_object_set_new(row, "op", exact(i, name));
        json_object_set_new(row, "count", json_integer(0));
        json_object_set_new(row, "runs",
                            own       ? json_string("function")
                            : is.runs ? json_string(is.runs)
                                      : json_null());
        json_object_set_new(row, "integers", json_string(is.integers));
        json_array_append_new(i->operators, row);
        map_set(i->rows, name, row);
    }
    json_t *n_of = json_object_get(row, "count");
    json_integer_set(n_of, json_integer_value(n_of) + 1);
}

static void count_nodes(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    count_node(ctx, n);
}

static void count_constant(Value *v, void *ctx) {
    Info *i = ctx;
    if (v->kind != VALUE_CONST || !v->data)
        return;
    i->elements += v->data->count;
    i->bytes += elem_bytes(v->data->elem, v->data->count);
}

static int most_first(const void *x, const void *y) {
    json_t *const *a = x, *const *b = y;
    json_int_t n = json_integer_value(json_object_get(*a, "count")),
               k = json_integer_value(json_object_get(*b, "count"));
    int by_name = strcmp(json_string_value(json_object_get(*a, "op")),
                         json_string_value(json_object_get(*b, "op")));
    return n != k ? (k > n) - (k < n) : by_name;
}

static void add_operators(Info *i) {
    json_t *found = i->operators, *sorted = json_array();
    module_each_graph(i->m, count_nodes, i);
    size_t n = json_array_size(found);
    json_t **rows = NEW_ARRAY(i->m->arena, json_t *, n + 1);
    for (size_t k = 0; k < n; k++)
        rows[k] = json_array_get(found, k);
    qsort(rows, n, sizeof *rows, most_first);
    for (size_t k = 0; k < n; k++)
        json_array_append(sorted, rows[k]);
    json_object_set_new(i->root, "operators", sorted);
    module_each_value(i->m, count_constant, i);
    json_object_set_new(i->root, "constants", count(i->elements));
    json_object_set_new(i->root, "bytes_of_constants", count(i->bytes));
}

/* ---- what is quantized ---- */

static bool is_quantized(const Value *v) {
    return v && (v->type.quant || (v->def && node_conversion(v->def) == CONVERT_DEQUANTIZE));
}

static void count_products(Graph *g, void *ctx) {
    Info *i = ctx;
    FOR_NODES(n, g) {
        const QuantRule *r = n->def ? &n->def->quant : NULL;
        if (!r || r->kind != QUANT_MAC)
            continue;
        const Value *x = node_input(n, 0), *w = node_input(n, (size_t)r->mac.weight);
        bool both = x && x->type.quant && w && w->type.quant;
        i->products++;
        i->on_integers += both;
        i->weights_alone += !both && is_quantized(w) && !is_quantized(x);
    }
}

static void add_products(Info *i) {
    module_each_graph(i->m, count_products, i);
    json_object_set_new(i->root, "products", count(i->products));
    json_object_set_new(i->root, "products_quantized", count(i->on_integers));
    json_object_set_new(i->root, "products_of_quantized_weights", count(i->weights_alone));
}

/* ---- what running it takes ---- */

/* Of a float model or one whose quantization is in types by now. */
static void add_network(Info *i) {
    NetworkSigns signs;
    NetworkKind k = network_kind(i->m, &signs);
    if (k == N_NETWORKS)
        return;
    json_object_set_new(i->root, "kind", json_string(network_name(k)));
    json_object_set_new(i->root, "kind_words", json_string(network_words(k)));
    json_object_set_new(i->root, "kind_of", exact(i, network_reasons(i->m->arena, &signs)));
    json_object_set_new(i->root, "preset", exact(i, preset_text(i->m->arena, k)));
}

static void add_left_out(Info *i, const LeftOut *out) {
    json_t *list = json_array();
    for (size_t k = 0; out && k < out->n; k++) {
        const Rejection *r = out->reasons[k];
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "op", exact(i, r->op), "count",
                                              count(r->count), "why", exact(i, str_from(r->why))));
    }
    json_object_set_new(i->root, "cannot_run", list);
}

/* The first value whose shape only a run tells, as numbers of inputs, or computed ones, decide it;
 * NULL: there is none, or an operator that cannot run stands before it. */
static const Value *open_length(const Module *m) {
    size_t n;
    FOR_NODES(node, m->graph)
    for (size_t k = 0; k < node->n_out; k++)
        if (node->out[k] && !type_count(node->out[k]->type, &n))
            return node->def && node->def->bind ? node->out[k] : NULL;
    return NULL;
}

/* Decisions are carried out for it: float weights that become integers are not what runs. Where
 * some are still open (`?`) they stay, and so do the floats. */
static void carry_out(Info *i, const Job *j) {
    PassContext quiet = j->ctx;
    quiet.d = i->m->mute;
    if (!i->decided || !pass_true_quant(i->m, &quiet))
        return;
    json_object_set_new(i->root, "bytes_as_integers", count(module_const_bytes(i->m)));
}

/* With a batch of 1; nothing where a size is open, or numbers are not at hand, which is no fault of
 * what is told. What no size changes is computed first, and not for each that is tried. */
static void add_sizes(Info *i) {
    Module *m = i->m;
    ProgramOptions options = {.partial = true};
    DataPaths none = {0};
    bool asked = module_others_known(m);
    if (asked && specialise_options(m->arena, m->graph, true).n)
        module_fold(m, &(FoldOptions){.drops = true});
    const BatchPlan *plan = samples_plan(m, &none, m->mute);
    bool batch = plan && plan_has_batch(plan);
    Str fix = specialise_options(m->arena, m->graph, !batch);
    json_object_set_new(i->root, "batch", asked ? json_boolean(batch) : json_null());
    json_object_set_new(i->root, "fix", fix.n ? exact(i, fix) : json_null());
    bool whole = module_data_required(m, m->mute) && shapes_fix(m, &none, m->mute);
    const Program *p = whole ? program_build(m, &options, m->mute) : NULL;
    if (!p)
        return;
    const Value *open = open_length(m);
    if (open) {
        json_object_set_new(i->root, "told_by_run", exact(i, open->name));
        return;
    }
    json_object_set_new(i->root, "multiply_accumulates", json_integer(p->macs));
    json_object_set_new(i->root, "bytes_of_values_at_once", count(p->arena_alive));
    add_left_out(i, p->left_out);
}

/* ---- what to do next ---- */

static void add_next(Info *i, const Job *j) {
    bool quantized = i->decided || i->typed || i->spelled;
    NextFacts f = {.path = i->s->o.inputs.items[0],
                   .quantized = quantized,
                   .decided = i->decided,
                   .statistics = i->statistics,
                   .completable = i->on_integers < i->products && job_leaves_float(j, i->m)};
    json_object_set_new(i->root, "next", exact(i, next_command(i->m->arena, &f)));
}

/* ---- as text ---- */

/* As messages show it, whatever the model holds. */
static const char *text_at(Diags *d, const json_t *of, const char *key) {
    const char *text = json_string_value(json_object_get(of, key));
    return text ? diag_name(d, str_from(text)) : "";
}

static long long number_at(const json_t *of, const char *key) {
    return (long long)json_integer_value(json_object_get(of, key));
}

static void print_ports(Diags *d, const json_t *ports, const char *title) {
    size_t k;
    json_t *p;
    puts(title);
    json_array_foreach(ports, k, p) {
        printf("  %s : %s", text_at(d, p, "name"), text_at(d, p, "type"));
        if (json_object_get(p, "min"))
            printf("  from %.4g to %.4g", json_real_value(json_object_get(p, "min")),
                   json_real_value(json_object_get(p, "max")));
        puts("");
    }
}

static void print_operators(Diags *d, const json_t *operators) {
    size_t k;
    json_t *row;
    printf("%-40s  %5s  %-8s  %s\n", "operator", "nodes", "runs", "integers");
    json_array_foreach(operators, k, row) {
        const char *runs = text_at(d, row, "runs");
        printf("%-40s  %5lld  %-8s  %s\n", text_at(d, row, "op"), number_at(row, "count"),
               *runs ? runs : "no", text_at(d, row, "integers"));
    }
}

static void print_head(Diags *d, const json_t *r) {
    const char *domain, *by = text_at(d, r, "producer"),
                        *version = text_at(d, r, "producer_version");
    json_t *opset;
    printf("%s: %s", text_at(d, r, "model"),
           strcmp(text_at(d, r, "format"), "qir") ? "ONNX" : "qir");
    json_object_foreach(json_object_get(r, "opsets"), domain, opset) printf(
        ", %s%sopset %lld", domain, *domain ? " " : "", (long long)json_integer_value(opset));
    if (*by)
        printf(", by %s%s%s", by, *version ? " " : "", version);
    printf("\ncame as %s", text_at(d, r, "came"));
    if (number_at(r, "products"))
        printf("; %lld of %lld product%s quantized", number_at(r, "products_quantized"),
               number_at(r, "products"), number_at(r, "products") == 1 ? " is" : "s are");
    if (number_at(r, "products_of_quantized_weights"))
        printf(", of %lld more the weights are", number_at(r, "products_of_quantized_weights"));
    puts("");
}

static void print_sizes(Diags *d, const json_t *r) {
    size_t k;
    json_t *out;
    printf("%lld numbers in constants, %lld bytes", number_at(r, "constants"),
           number_at(r, "bytes_of_constants"));
    if (json_object_get(r, "bytes_as_integers"))
        printf(", %lld once weights are integers", number_at(r, "bytes_as_integers"));
    puts("");
    if (!json_object_get(r, "multiply_accumulates")) {
        const char *fix = text_at(d, r, "fix"), *told = text_at(d, r, "told_by_run");
        if (*told)
            printf(
                "work and memory are not known: the shape of '%s' follows from numbers that a run "
                "has\n",
                told);
        else if (*fix)
            printf("work and memory are not known, as lengths are open: %s gives them numbers\n",
                   fix);
        else
            puts("work and memory are not known: `qxc run MODEL -random=1` tells why");
        return;
    }
    printf("%lld multiply-accumulates a sample, values alive at one time %lld bytes\n",
           number_at(r, "multiply_accumulates"), number_at(r, "bytes_of_values_at_once"));
    json_array_foreach(json_object_get(r, "cannot_run"), k, out)
        printf("%s cannot run here (%lld node%s): %s\n", text_at(d, out, "op"),
               number_at(out, "count"), plural(number_at(out, "count")), text_at(d, out, "why"));
}

/* No part of it is the model's. */
static const char *own_text(const json_t *of, const char *key) {
    return json_string_value(json_object_get(of, key));
}

static void print_network(const json_t *r) {
    if (json_object_get(r, "kind"))
        printf("kind: %s (%s); -preset=%s: %s\n", own_text(r, "kind_words"), own_text(r, "kind_of"),
               own_text(r, "kind"), own_text(r, "preset"));
}

static void print_text(Diags *d, const json_t *r) {
    print_head(d, r);
    print_ports(d, json_object_get(r, "inputs"), "inputs:");
    print_ports(d, json_object_get(r, "outputs"), "outputs:");
    print_sizes(d, r);
    print_operators(d, json_object_get(r, "operators"));
    print_network(r);
    printf("next: %s\n", json_string_value(json_object_get(r, "next")));
}

ExitCode cmd_info(Session *s) {
    ExitCode code;
    Job j;
    if (!job_init(&j, &s->o, s->arena, s->d))
        return job_init_failure(&j);
    Module *m = session_read(s, 0, &code);
    if (!m)
        return code;
    if (!job_fix_shapes(&j, m))
        return EXIT_USAGE;
    Info i = {.s = s,
              .m = m,
              .library = j.ctx.library,
              .root = json_object(),
              .operators = json_array(),
              .rows = map_new(m->arena)};
    add_file(&i);
    add_ports(&i);
    add_operators(&i);
    bool ok = job_raise(&j, m);
    if (ok) {
        add_products(&i);
        add_network(&i);
        add_next(&i, &j);
        carry_out(&i, &j);
        add_sizes(&i);
        if (s->o.json)
            json_print(i.root);
        else
            print_text(s->d, i.root);
    }
    json_decref(i.operators);
    json_decref(i.root);
    return ok ? EXIT_DONE : EXIT_WRONG;
}
