/* FunctionProto. */
#include "frontend/onnx/read.h"

/* ---- reading ---- */

static void read_function_inputs(Reader *r, Scope *s, const Onnx__FunctionProto *p, Infos *infos) {
    for (size_t i = 0; i < p->n_input; i++) {
        Loc at = reader_loc(r, "function input", pb_str(true, p->input[i]));
        Str name = read_name(r, at, true, p->input[i]);
        Value *v = graph_add_input(s->graph, name, TYPE_UNKNOWN);
        v->loc = at;
        if (name.n == 0)
            diag_error(r->diags, at, "an input has no name");
        else if (scope_define(r, s, v))
            take_info(r, infos, v);
    }
}

static void read_function_outputs(Reader *r, const Scope *s, const Onnx__FunctionProto *p) {
    for (size_t i = 0; i < p->n_output; i++) {
        Str name = pb_str(true, p->output[i]);
        Value *v = name.n ? scope_find(s, name) : NULL;
        if (v)
            graph_add_output(s->graph, v);
        else
            diag_error(r->diags, reader_loc(r, "function output", name),
                       "no node or input of the function defines it");
    }
}

static void claim_formal(Reader *r, const Function *f, Map *seen, Str name) {
    if (!map_set(seen, name, (void *)f))
        diag_error(r->diags, f->loc, "attribute \"%s\" is given twice", diag_name(r->diags, name));
}

static void read_formals(Reader *r, Function *f, const Onnx__FunctionProto *p) {
    Map *seen = map_new(r->arena);
    f->n_attrs = p->n_attribute;
    f->attrs = NEW_ARRAY(r->arena, Str, f->n_attrs);
    for (size_t i = 0; i < f->n_attrs; i++)
        f->attrs[i] = read_name(r, f->loc, true, p->attribute[i]);
    for (size_t i = 0; i < f->n_attrs; i++)
        claim_formal(r, f, seen, f->attrs[i]);
    f->n_defaults = p->n_attribute_proto;
    f->defaults = NEW_ARRAY(r->arena, Attr, f->n_defaults);
    for (size_t i = 0; i < f->n_defaults; i++) {
        Attr *a = &f->defaults[i];
        read_attr(r, f->loc, p->attribute_proto[i], NULL, NULL, a);
        claim_formal(r, f, seen, a->name);
        for (size_t k = 0; k < attr_graphs(a); k++)
            a->v.g[k]->function = f;
    }
}

Function *read_function(Reader *r, const Onnx__FunctionProto *p) {
    Function *f = NEW(r->arena, Function);
    f->loc = reader_loc(r, "function", pb_str(p->has_name, p->name));
    f->name = read_name(r, f->loc, p->has_name, p->name);
    f->domain = read_name(r, f->loc, p->has_domain, p->domain);
    f->overload = read_name(r, f->loc, p->has_overload, p->overload);
    f->doc = pb_str(p->has_doc_string, p->doc_string);
    f->meta = read_meta(r, f->loc, p->n_metadata_props, p->metadata_props);
    f->imports = read_imports(r, f->loc, p->n_opset_import, p->opset_import);
    f->n_imports = p->n_opset_import;
    if (f->name.n == 0)
        diag_error(r->diags, f->loc, "a function has no name");
    f->body = graph_new(r->module, STR_NONE);
    f->body->function = f;
    f->body->loc = f->loc;
    const Place *around = enter_place(r, "function \"", f->name, "\"");
    read_formals(r, f, p);
    Scope s = {NULL, f->body, map_new(r->arena)};
    Infos infos = read_infos(r, p->n_value_info, p->value_info, 0, NULL);
    read_function_inputs(r, &s, p, &infos);
    read_nodes(r, &s, p->n_node, p->node, NULL, &infos);
    read_function_outputs(r, &s, p);
    Buf extra = buf_new(r->arena), places = buf_new(r->arena);
    if (!p->n_opset_import) {
        diag_warning(
            r->diags, f->loc,
            "the function imports no opset, for which onnxruntime refuses it: taken are the "
            "model's imports");
        wire_put_number(&places, PLACE_ABSENT, FUNCTION_OPSET_IMPORT);
    }
    keep_infos(f->body, &infos, FUNCTION_VALUE_INFO, &extra, &places);
    if (places.n)
        wire_put_bytes(&extra, EXTRA_PLACES, buf_as_str(&places));
    extra_unknown(&extra, &p->base);
    f->extra = extra_done(&extra);
    r->in = around;
    return f;
}
