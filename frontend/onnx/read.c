#include "frontend/onnx/read.h"

#include "frontend/onnx/wire.h"
#include "support/utf8.h"

/* Every node and initializer gets its words, so they are put together without garbage. */
static void put_name(Reader *r, Str name) {
    enum { SHORT = 100 };
    if (name.n <= SHORT)
        buf_escaped(&r->words, name);
    else
        buf_text(&r->words, diag_name(r->diags, name));
}

static const Place *new_place(Reader *r) {
    Place *p = NEW(r->arena, Place);
    *p = (Place){arena_str(r->arena, buf_as_str(&r->words)).s, r->in};
    return p;
}

static Loc words_done(Reader *r) {
    return (Loc){.source = r->source, .begin = ++r->n_places, .what = new_place(r)};
}

const Place *enter_place(Reader *r, const char *words, Str name, const char *rest) {
    const Place *outer = r->in;
    r->words.n = 0;
    buf_text(&r->words, words);
    put_name(r, name);
    buf_text(&r->words, rest);
    r->in = new_place(r);
    return outer;
}

Loc reader_loc(Reader *r, const char *what, Str name) {
    r->words.n = 0;
    buf_text(&r->words, what);
    buf_text(&r->words, " \"");
    put_name(r, name);
    buf_byte(&r->words, '"');
    return words_done(r);
}

Loc node_loc(Reader *r, const Onnx__NodeProto *p, size_t index) {
    Str op = pb_str(p->has_op_type, p->op_type), name = pb_str(p->has_name, p->name);
    r->words.n = 0;
    buf_text(&r->words, "node ");
    if (name.n) {
        buf_byte(&r->words, '"');
        put_name(r, name);
        buf_text(&r->words, "\" (");
        put_name(r, op);
        buf_fmt(&r->words, ", #%zu)", index);
    } else {
        buf_fmt(&r->words, "#%zu (", index);
        put_name(r, op);
        buf_byte(&r->words, ')');
    }
    return words_done(r);
}

Str pb_str(bool has, ProtobufCBinaryData b) {
    if (!has)
        return STR_NONE;
    return b.len ? (Str){(const char *)b.data, b.len} : STR("");
}

static bool is_utf8(Str s) {
    uint32_t c;
    for (size_t i = 0, len; i < s.n; i += len)
        if ((len = utf8_decode(s.s + i, s.n - i, &c)) == 0)
            return false;
    return true;
}

Str read_name(Reader *r, Loc at, bool has, ProtobufCBinaryData b) {
    Str s = pb_str(has, b);
    if (s.n > ONNX_MAX_NAME)
        diag_error(r->diags, at, "a name is %zu bytes long; at most %d are supported", s.n,
                   ONNX_MAX_NAME);
    else if (!r->warned_utf8 && !is_utf8(s)) {
        r->warned_utf8 = true;
        diag_warning(r->diags, at, "the name \"%s\" is not UTF-8 (said once per model)",
                     diag_name(r->diags, s));
    }
    return s;
}

Meta read_pairs(Reader *r, size_t n, Onnx__StringStringEntryProto **entries) {
    Meta m = {n ? NEW_ARRAY(r->arena, StrPair, n) : NULL, n};
    for (size_t i = 0; i < n; i++) {
        m.items[i].key = pb_str(entries[i]->has_key, entries[i]->key);
        m.items[i].value = pb_str(entries[i]->has_value, entries[i]->value);
        m.items[i].extra = only_unknown(r, &entries[i]->base);
    }
    return m;
}

/* ONNX wants keys to differ, and its checker refuses a model with one twice. */
Meta read_meta(Reader *r, Loc at, size_t n, Onnx__StringStringEntryProto **entries) {
    Meta m = read_pairs(r, n, entries);
    Map *seen = NULL;
    for (size_t i = 0; i < n && !r->warned_keys; i++) {
        r->warned_keys = key_before(r->arena, &seen, m.items, sizeof *m.items, n, i);
        if (r->warned_keys)
            diag_warning(r->diags, at,
                         "its metadata have the key \"%s\" twice: onnx.checker refuses that "
                         "(said once per model)",
                         diag_name(r->diags, m.items[i].key));
    }
    return m;
}

Import *read_imports(Reader *r, Loc at, size_t n, Onnx__OperatorSetIdProto **sets) {
    Import *imports = NEW_ARRAY(r->arena, Import, n);
    bool versions = true;
    for (size_t i = 0; i < n; i++) {
        const Onnx__OperatorSetIdProto *p = sets[i];
        Str domain = read_name(r, at, p->has_domain, p->domain);
        if (!p->has_version)
            versions = diag_error(r->diags, at, "the import of domain \"%s\" has no version",
                                  diag_name(r->diags, domain));
        imports[i] = (Import){domain, p->version, only_unknown(r, &p->base), at};
    }
    if (versions)
        imports_check(r->arena, imports, n, r->diags);
    return imports;
}

/* ---- unpacking into the arena ---- */

static void *pb_alloc(void *arena, size_t n) {
    return arena_alloc(arena, n + 1); /* zeroed, so every text ends in a NUL */
}

static void pb_free(void *arena, void *p) {
    (void)arena, (void)p;
}

static ProtobufCMessage *unpack(Reader *r, const ProtobufCMessageDescriptor *root) {
    Str compact;
    Loc at = {.source = r->source};
    if (!wire_compact(r->arena, r->diags, at, r->file, r->map, root, &compact))
        return NULL;
    ProtobufCAllocator alloc = {pb_alloc, pb_free, r->arena};
    ProtobufCMessage *m =
        protobuf_c_message_unpack(root, &alloc, compact.n, (const uint8_t *)compact.s);
    if (!m)
        diag_error(r->diags, at, "not a well-formed ONNX file");
    return m;
}

/* ---- the model ---- */

static void read_header(Reader *r, Loc at, const Onnx__ModelProto *p) {
    Module *m = r->module;
    m->has_ir_version = p->has_ir_version;
    m->ir_version = p->ir_version;
    if (!p->has_ir_version)
        diag_error(r->diags, at, "not an ONNX model: it has no ir_version");
    else if (ir_version_check(p->ir_version, at, r->diags) && p->ir_version >= 3 &&
             p->n_opset_import == 0)
        diag_error(r->diags, at, "the model imports no opset");
    m->producer_name = pb_str(p->has_producer_name, p->producer_name);
    m->producer_version = pb_str(p->has_producer_version, p->producer_version);
    m->domain = pb_str(p->has_domain, p->domain);
    m->has_model_version = p->has_model_version;
    m->model_version = p->model_version;
    m->doc = pb_str(p->has_doc_string, p->doc_string);
    m->imports = read_imports(r, at, p->n_opset_import, p->opset_import);
    m->n_imports = m->cap_imports = p->n_opset_import;
    m->meta = read_meta(r, at, p->n_metadata_props, p->metadata_props);
}

static void read_model(Reader *r, const Onnx__ModelProto *p) {
    Module *m = r->module;
    Loc at = {.source = r->source};
    read_header(r, at, p);
    for (size_t i = 0; i < p->n_functions; i++) {
        Function *f = read_function(r, p->functions[i]);
        ARENA_PUSH(m->arena, m->functions, m->n_functions, m->cap_functions, f);
    }
    if (p->graph)
        m->graph = read_graph(r, p->graph, NULL, NULL, STR_NONE);
    else
        diag_error(r->diags, at, "not an ONNX model: it has no graph");
    Buf extra = buf_new(r->arena);
    for (size_t i = 0; i < p->n_training_info; i++)
        extra_message(&extra, MODEL_TRAINING_INFO, &p->training_info[i]->base);
    for (size_t i = 0; i < p->n_configuration; i++)
        extra_message(&extra, MODEL_CONFIGURATION, &p->configuration[i]->base);
    extra_unknown(&extra, &p->base);
    m->extra = extra_done(&extra);
}

/* The module, whole or not: whether there were errors is the caller's to see. */
static Module *read_bytes(Arena *a, Diags *d, const char *name, Str bytes, const FileMap *map,
                          const OnnxReadOptions *options) {
    Module *m = module_new(a, d);
    int errors = diags_errors(d);
    m->path = arena_str(a, str_from(name)).s;
    Folders in = options ? options->in : (Folders){0};
    in.dir = in.dir ? in.dir : path_dir(a, name);
    Reader *r = NEW(a, Reader);
    *r = (Reader){.arena = a,
                  .diags = d,
                  .module = m,
                  .file = bytes,
                  .map = map,
                  .source = diags_source(d, name, STR_NONE),
                  .words = buf_new(a),
                  .externals = {m, in, options && options->references_only, NULL}};
    ProtobufCMessage *p = unpack(r, &onnx__model_proto__descriptor);
    if (p)
        read_model(r, (const Onnx__ModelProto *)p);
    diag_reason(d, p, errors, (Loc){.source = r->source}, "the model");
    return m;
}

/* `m`, or NULL with its files unmapped where the reader met errors. */
static Module *unless_errors(Module *m, int errors_before) {
    if (diags_errors(m->diags) == errors_before)
        return m;
    module_unmap(m);
    return NULL;
}

Module *onnx_read_bytes(Arena *a, Diags *d, const char *name, Str bytes,
                        const OnnxReadOptions *options) {
    int errors = diags_errors(d);
    return unless_errors(read_bytes(a, d, name, bytes, NULL, options), errors);
}

Module *onnx_read(Arena *a, Diags *d, const char *path, const OnnxReadOptions *options) {
    FileMap *map = file_map(path, LOC_NONE, d);
    if (!map)
        return NULL;
    int errors = diags_errors(d);
    Module *m = read_bytes(a, d, path, file_bytes(map), map, options);
    module_keep_map(m, map);
    return unless_errors(m, errors);
}
