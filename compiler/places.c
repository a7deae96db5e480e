/* See compiler/places.h. */
#include "compiler/places.h"

#include "backend/qir/qir_write.h"
#include "compiler/metadata.h"
#include "frontend/onnx/onnx.h"
#include "frontend/qir/qir_place.h"

#include <unistd.h>

typedef struct Mark {
    uint32_t begin, end; /* in the text; end 0: does not stand there */
} Mark;

typedef struct Shown {     /* one ONNX file */
    uint32_t source, text; /* as the messages name it, and its text; 0: there is none */
    Mark *marks;           /* by number of the place */
    size_t n, cap;
} Shown;

typedef struct Places {
    Session *session;
    Shown *files;
    size_t n, cap;
} Places;

/* The first of a number stands: what is made of a part has its place. */
static void mark(void *ctx, Loc at, size_t begin, size_t end) {
    Shown *f = ((void **)ctx)[0];
    Arena *a = ((void **)ctx)[1];
    if (!at.what || end > UINT32_MAX)
        return;
    while (f->n <= at.begin)
        ARENA_PUSH(a, f->marks, f->n, f->cap, (Mark){0});
    if (!f->marks[at.begin].end)
        f->marks[at.begin] = (Mark){(uint32_t)begin, (uint32_t)end};
}

/* Reading again gives the same numbers to the same places. */
static void show_file(Session *s, Shown *f, const char *path) {
    if (strcmp(path, "-") == 0 && lseek(STDIN_FILENO, 0, SEEK_SET) != 0)
        return;
    Arena *a = arena_new(0, &s->oom);
    Diags *quiet = diags_new(a, NULL, false);
    OnnxReadOptions options = {.in.other = s->o.external_data_dir};
    Module *m = onnx_read(a, quiet, path, &options);
    if (!m) {
        arena_free(a);
        return;
    }
    metadata_take(m);
    if (module_resolve(m, quiet))
        module_infer_onnx(m, quiet);
    Buf b = buf_new(a);
    qir_print(
        m, &b,
        &(QirWriteOptions){
            .elide = true, .elide_larger = 256, .mark = mark, .mark_ctx = (void *[]){f, s->arena}});
    f->text = diags_source(s->d, path, arena_str(s->arena, buf_as_str(&b)));
    module_free(m);
}

static Loc show(void *ctx, Loc at) {
    Places *p = ctx;
    Session *s = p->session;
    size_t i = 0;
    while (i < p->n && p->files[i].source != at.source)
        i++;
    if (i == p->n) {
        Shown f = {.source = at.source};
        const char *path = diags_source_name(s->d, at.source);
        bool was_read = false; /* the file of a tensor, or a model that is broken, has no text */
        for (size_t k = 0; path && k < s->n_modules; k++)
            was_read |= strcmp(s->modules[k]->path, path) == 0;
        if (was_read)
            show_file(s, &f, path);
        else
            return LOC_NONE;
        ARENA_PUSH(s->arena, p->files, p->n, p->cap, f);
    }
    const Shown *f = &p->files[i];
    if (!f->text || at.begin >= f->n || !f->marks[at.begin].end)
        return LOC_NONE;
    return (Loc){f->text, f->marks[at.begin].begin, f->marks[at.begin].end, NULL};
}

void places_show(Session *s) {
    Places *p = NEW(s->arena, Places);
    p->session = s;
    diags_show(s->d, show, p, "-emit=qir");
    diags_find_parts(s->d, qir_find_part);
}
