/* Resize of opset 10 in the words of opset 11. */
#include "ir/ops/resize.h"
#include "ir/provenance.h"

void resize_to_eleven(Node *n, bool shrinks, UniqueNames *names) {
    Value *s = n->in[1];
    while (n->n_in <= RESIZE_SCALES)
        node_add_input(n, NULL);
    n->in[RESIZE_ROI] = upgrade_floats(n, "roi", (Floats){NULL, 0}, names);
    n->in[RESIZE_SCALES] = s;
    node_set_string(n, "coordinate_transformation_mode", STR("asymmetric"));
    node_set_string(n, "nearest_mode", shrinks ? STR("ceil") : STR("floor"));
}

/* The scales below 1, or the others; 1 in the place of those that are not meant. */
static Value *part_of(Node *n, const Tensor *scales, bool below, UniqueNames *names) {
    float *part = NEW_ARRAY(n->graph->module->arena, float, scales->count);
    for (size_t i = 0; i < scales->count; i++) {
        float v = (float)tensor_float(scales, i);
        part[i] = (v < 1) == below ? v : 1;
    }
    return upgrade_floats(n, "scales", (Floats){part, scales->count}, names);
}

/* A node before n that makes axes shorter; n makes others longer. From opset 11 on one node takes
 * one neighbour along all axes. */
static void split_in_two(Node *n, const Tensor *scales, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    Node *first = node_new(n->graph, STR_NONE, n->op, 2, 1);
    first->loc = n->loc;
    first->in[0] = n->in[RESIZE_X];
    first->in[1] = part_of(n, scales, true, names);
    node_set_string(first, "mode", STR("nearest"));
    Str name = arena_strf(a, STR_FMT "_shrunk", STR_ARG(n->out[0]->name));
    n->in[RESIZE_X] = node_add_output(first, 0, unique_name(names, name), TYPE_UNKNOWN);
    n->in[1] = part_of(n, scales, false, names);
    node_from(first, n, "upgrade");
    node_insert_before(n, first);
    resize_to_eleven(first, true, names);
}

bool resize_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    const ResizeAttrs *a = n->typed;
    const Tensor *scales = n->n_in > 1 ? value_data(n->in[1]) : NULL;
    bool shrinks = false, grows = false;
    (void)d;
    if (from >= 11 || to < 11)
        return true;
    for (size_t i = 0; scales && scales->data && i < scales->count; i++) {
        shrinks |= tensor_float(scales, i) < 1;
        grows |= tensor_float(scales, i) > 1;
    }
    if (shrinks && grows && a && str_is(a->mode, "nearest")) {
        split_in_two(n, scales, names);
        shrinks = false;
    }
    resize_to_eleven(n, shrinks, names);
    return true;
}
