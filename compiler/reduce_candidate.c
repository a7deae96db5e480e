/* One candidate of `qxc reduce`: a model is read, edited and written by a process of its own, as
 * the failure that is looked for may well be one of qxc. */
#include "compiler/reduce.h"

#include <unistd.h>

static bool verify(const Session *s, Module *m, Diags *d) {
    return module_check(m, verify_read_flags(s->is_text), d);
}

/* A model has to state the types of its inputs and outputs, whoever found them out. */
static void state_interface(const Graph *g) {
    for (size_t i = 0; i < g->n_in; i++)
        g->in[i]->declared = g->in[i]->type.kind != TYPE_NONE;
    for (size_t i = 0; i < g->n_out; i++)
        g->out[i]->declared = g->out[i]->type.kind != TYPE_NONE;
}

static void count_nodes(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    ++*(size_t *)ctx;
}

static ExitCode make(const Reducer *r, Making k) {
    Session *s = r->s;
    Diags *quiet = diags_new(s->arena, NULL, false); /* of the verifier, whose word is not final */
    ExitCode code;
    s->d = k.loud ? s->d : diags_new(s->arena, NULL, false);
    if (k.last) { /* what INPUT names is kept, too */
        Diags *loud = s->d;
        s->d = quiet;
        session_parse(s, 0, &code);
        s->d = loud;
    } else if (s->o.external_data) {
        s->o.external_data = ""; /* a candidate's own */
    }
    s->o.inputs.items[0] = k.from;
    if (!k.first)
        s->o.external_data_dir = NULL;
    Module *m = session_parse(s, 0, &code);
    if (!m)
        return code;
    bool valid = verify(s, m, quiet);
    if (k.first)
        *r->facts = (Facts){.text = s->is_text, .valid = valid};
    if (k.shrink) {
        bool had_outputs = m->graph->n_out > 0;
        int errors = diags_errors(s->d);
        k.shrink->run(m, &k.places);
        r->facts->places = k.places.seen;
        if (k.places.begin == k.places.end)
            return EXIT_DONE;
        if (diags_errors(s->d) > errors)
            return EXIT_WRONG;
        valid = verify(s, m, quiet);
        if ((r->facts->valid && !valid) || (had_outputs && m->graph->n_out == 0))
            return EXIT_WRONG;
        state_interface(m->graph);
    }
    r->facts->nodes = 0;
    module_each_graph(m, count_nodes, &r->facts->nodes);
    s->o.output = k.to;
    s->o.emit = r->facts->text ? "qir" : "onnx";
    Job j = {.o = &s->o, .d = s->d, .emit = r->facts->text ? EMIT_QIR : EMIT_ONNX};
    return session_write(s, &j, m);
}

pid_t reducer_make(Reducer *r, Making k) {
    pid_t child = child_start(&r->children);
    if (child != 0)
        return child;
    /* _exit, as what the parent has open and staged is not the child's to end. */
    if (setjmp(r->s->oom.env))
        _exit(EXIT_WRONG);
    ExitCode code = make(r, k);
    if (fflush(stdout) || ferror(stdout))
        code = code == EXIT_DONE ? EXIT_IO : code;
    _exit(code);
}
