#include "passes/enclose.h"

bool is_call_begin(const Node *n) {
    return node_is_in(n, "qxc", "CallBegin");
}

bool is_call_end(const Node *n) {
    return node_is_in(n, "qxc", "CallEnd");
}

/* Passes move scales, biases and types along floats; lengths and places they leave alone, and the
 * body's shapes follow from them. */
static bool may_be_moved(const Value *v) {
    ElemType e = v->type.kind == TYPE_TENSOR ? type_real_elem(v->type) : ELEM_UNDEFINED;
    return (!e || elem_is_float(e)) && (v->kind == VALUE_INPUT || !value_data(v));
}

static Node *border(Node *call, Node *kept, const char *op, size_t n, const char *by) {
    Node *made = node_new(call->graph, STR("qxc"), str_from(op), n, n);
    made->call = kept;
    made->within = call->within;
    made->loc = call->loc;
    node_from(made, call, by);
    return made;
}

/* As names of the body are made from those of results, base_name knows the suffix of these. */
static Str named(UniqueNames *names, const Value *v, const char *suffix) {
    return unique_name(names,
                       arena_strf(v->graph->module->arena, STR_FMT "%s", STR_ARG(v->name), suffix));
}

static void open(Node *call, Node *begin, UniqueNames *names) {
    for (size_t i = 0; i < call->n_in; i++) {
        Value *v = begin->in[i] = call->in[i];
        if (!v || !may_be_moved(v))
            continue;
        Type t = v->type;
        if (t.kind == TYPE_TENSOR)
            t = type_tensor(type_real_elem(t), t.rank, t.dims);
        call->in[i] = node_add_output(begin, i, named(names, v, "_CallBegin_Output"), t);
    }
    node_insert_before(call, begin);
}

static void close(Node *call, Node *end, UniqueNames *names) {
    for (size_t i = 0; i < call->n_out; i++) {
        Value *v = call->out[i];
        if (!v)
            continue;
        node_take_result(end, i, v);
        end->call->out[i] = v; /* rules may name a call by it */
        end->in[i] = node_add_output(call, i, named(names, v, "_CallEnd_Input"), v->type);
    }
    node_insert_after(call, end);
}

/* The call without its operands and results. */
static Node *record(const Node *call) {
    Node *kept = node_like(call->graph, call);
    kept->name = call->name;
    kept->within = call->within;
    kept->attrs = call->attrs;
    kept->n_attrs = call->n_attrs;
    return kept;
}

void enclose_call(Node *call, UniqueNames *names, const char *by) {
    Node *kept = record(call);
    open(call, border(call, kept, "CallBegin", call->n_in, by), names);
    close(call, border(call, kept, "CallEnd", call->n_out, by), names);
    call->within = kept;
}

void name_call(Node *call) {
    Node *kept = record(call);
    for (size_t i = 0; i < call->n_out; i++)
        kept->out[i] = call->out[i];
    call->within = kept;
}
