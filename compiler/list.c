/* qxc list: what is supported, as a table. */
#include "compiler/library.h"
#include "compiler/list_ops.h"
#include "compiler/preset.h"
#include "compiler/session.h"
#include "passes/match.h"

static void list_passes(void) {
    for (size_t i = 0; i < pass_count(); i++) {
        const Pass *p = pass_at(i);
        printf("%-12s  %-5s -> %-5s  %s\n", p->name, p->before, p->after, p->summary);
    }
}

static const char *uses_of_function(const Function *f) {
    return library_is_own(f) ? "of -define" : function_is_recognised(f) ? "recognised" : "";
}

/* What helps others alone is left out. */
static ExitCode list_functions(Session *s) {
    Library *l =
        library_open(s->arena, (const char *const *)s->o.define.items, s->o.define.n, s->d);
    if (!l)
        return EXIT_USAGE;
    const Map *all = library_functions(l, LIBRARY_ALL);
    for (size_t i = 0; i < map_size(all); i++) {
        const Overloads *of = map_value(all, i);
        for (size_t k = 0; k < of->n; k++) {
            const Function *f = of->items[k];
            Buf name = buf_new(s->arena);
            if (str_is(f->domain, "qxc") && !function_is_recognised(f))
                continue;
            if (!domain_is_onnx(f->domain))
                buf_fmt(&name, STR_FMT "::", STR_ARG(f->domain));
            buf_str(&name, f->name);
            if (f->overload.n)
                buf_fmt(&name, "::" STR_FMT, STR_ARG(f->overload));
            printf("%-60.*s  %2zu nodes  %s\n", STR_ARG(buf_as_str(&name)), match_size(l, f),
                   uses_of_function(f));
        }
    }
    return EXIT_DONE;
}

static void list_param(const OnnxSchema *s, bool output, int index, const SchemaParam *p) {
    printf("  %s %d %s%s:", output ? "output" : "input", index, p->name,
           p->option == SCHEMA_OPTIONAL   ? " (optional)"
           : p->option == SCHEMA_VARIADIC ? " (any number)"
                                          : "");
    for (int e = 1; e < 32; e++)
        if (elem_known(e) && onnx_schema_allows(s, output, index, e))
            printf(" %s", elem_name((ElemType)e));
    putchar('\n');
}

static void suggest_op(Session *s, Str domain, Str op, int opset) {
    const char **names = NEW_ARRAY(s->arena, const char *, onnx_schema_count());
    size_t n = 0;
    for (size_t i = 0; i < onnx_schema_count(); i++) {
        const OnnxSchema *row = onnx_schema_at(i);
        if (domain_equal(str_from(row->domain), domain) && row->since <= opset &&
            (!n || strcmp(names[n - 1], row->name) != 0))
            names[n++] = row->name;
    }
    diag_did_you_mean(s->d, LOC_NONE, op, names, n);
}

static ExitCode list_types(Session *s) {
    if (s->o.inputs.n != 2) {
        diag_error(s->d, LOC_NONE,
                   "list types wants an operator: qxc list types Add "
                   "-target-opset=18");
        return EXIT_USAGE;
    }
    Str full = str_from(s->o.inputs.items[1]), domain = STR(""), op = full;
    for (size_t i = 0; i + 1 < full.n; i++)
        if (full.s[i] == ':' && full.s[i + 1] == ':') {
            domain = (Str){full.s, i};
            op = (Str){full.s + i + 2, full.n - i - 2};
        }
    int newest = onnx_schema_newest(domain);
    if (s->o.target) {
        diag_error(s->d, LOC_NONE,
                   "list types shows the types of ONNX's schemas: -target has no effect on them");
        return EXIT_USAGE;
    }
    if (!domain.n && s->o.target_opset > newest) {
        diag_error(s->d, LOC_NONE, "-target-opset=%lld: the newest opset qxc knows is %d",
                   (long long)s->o.target_opset, newest);
        return EXIT_USAGE;
    }
    int opset = s->o.target_opset > 0 ? (int)s->o.target_opset : newest;
    const OnnxSchema *schema = onnx_schema_find(domain, op, opset);
    if (!schema || schema->flags & SCHEMA_DEPRECATED) {
        diag_error(s->d, LOC_NONE, "there is no operator %s at opset %d", diag_name(s->d, full),
                   opset);
        suggest_op(s, domain, op, opset);
        return EXIT_WRONG;
    }
    printf("%s at opset %d (since %d)\n", s->o.inputs.items[1], opset, schema->since);
    for (int i = 0; i < schema->n_inputs; i++)
        list_param(schema, false, i, &schema->inputs[i]);
    for (int i = 0; i < schema->n_outputs; i++)
        list_param(schema, true, i, &schema->outputs[i]);
    return EXIT_DONE;
}

/* `list ops model.onnx` is asked by who wants to know of that model. */
static ExitCode too_many(Session *s, const char *what) {
    diag_error(s->d, LOC_NONE, "list %s takes nothing more, but '%s' is given", what,
               diag_name(s->d, str_from(s->o.inputs.items[1])));
    diag_note(s->d, LOC_NONE,
              "of a model, -report=FILE.html tells what becomes of each operator, and "
              "`qxc list quant MODEL` what is quantized");
    return EXIT_USAGE;
}

static void list_predicates(void) {
    for (size_t i = 0; i < predicate_count(); i++)
        printf("%-21s %s\n", predicate_at(i)->name, predicate_at(i)->means);
}

static void tell_targets(Session *s, const char *const *names, size_t n) {
    Buf all = buf_new(s->arena);
    for (size_t i = 0; i < n; i++)
        buf_fmt(&all, "%s%s", i ? ", " : "", names[i]);
    diag_note(s->d, LOC_NONE, "there are %s", buf_as_str(&all).s);
}

static ExitCode list_targets(Session *s) {
    const char *one = s->o.inputs.n > 1 ? s->o.inputs.items[1] : NULL;
    Str page = one ? target_text(str_from(one)) : STR_NONE;
    size_t n = target_count();
    const char **names = NEW_ARRAY(s->arena, const char *, n);
    for (size_t i = 0; i < n; i++)
        names[i] = arena_str(s->arena, target_name(i)).s;
    if (one && !page.s) {
        diag_error(s->d, LOC_NONE, "there is no target '%s'", diag_name(s->d, str_from(one)));
        diag_did_you_mean(s->d, LOC_NONE, str_from(one), names, n);
        tell_targets(s, names, n);
        return EXIT_USAGE;
    }
    if (one) {
        fwrite(page.s, 1, page.n, stdout);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < n; i++) {
        const TargetPage *t = target_find(s->arena, names[i], s->d);
        if (!t)
            return EXIT_WRONG;
        printf("%-8s %s\n", t->name, t->about);
    }
    return EXIT_DONE;
}

ExitCode cmd_list(Session *s) {
    const char *what = s->o.inputs.n ? s->o.inputs.items[0] : "";
    static const char *const kinds[] = {"ops",     "passes",  "functions", "predicates",
                                        "presets", "targets", "types",     "quant"};
    enum { ALONE = 5, N_KINDS = sizeof kinds / sizeof *kinds }; /* the first take nothing more */
    for (size_t i = 0; i < ALONE; i++)
        if (s->o.inputs.n > 1 && strcmp(what, kinds[i]) == 0)
            return too_many(s, what);
    if (strcmp(what, "ops") == 0)
        return list_ops(s);
    if (strcmp(what, "passes") == 0)
        list_passes();
    else if (strcmp(what, "predicates") == 0)
        list_predicates();
    else if (strcmp(what, "functions") == 0)
        return list_functions(s);
    else if (strcmp(what, "presets") == 0)
        return preset_list(s);
    else if (strcmp(what, "targets") == 0)
        return list_targets(s);
    else if (strcmp(what, "types") == 0)
        return list_types(s);
    else if (strcmp(what, "quant") == 0)
        return cmd_list_quant(s);
    else {
        diag_error(
            s->d, LOC_NONE,
            "list what? ops, passes, predicates, presets, targets, types OP or quant MODEL; or "
            "functions");
        diag_did_you_mean(s->d, LOC_NONE, str_from(what), kinds, N_KINDS);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}
