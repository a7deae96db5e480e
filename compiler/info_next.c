#include "compiler/info_next.h"

#include "compiler/options.h"
#include "support/file.h"

Str next_readable(Arena *a, const char *path) {
    bool taken = (path[0] == '-' && path[1]) || command_find(path);
    return taken ? arena_strf(a, "./%s", path) : str_from(path);
}

Str next_result(Arena *a, const char *path, const char *suffix) {
    Str stem = strcmp(path, "-") == 0 ? STR("model") : path_stem(a, path);
    Str name = arena_strf(a, STR_FMT "%s", STR_ARG(stem), suffix);
    return next_readable(a, name.s);
}

Str next_command(Arena *a, const NextFacts *f) {
    const char *options, *suffix;
    if (f->quantized && f->completable)
        options = " -calib=DATA.npz", suffix = ".complete.qir";
    else if (f->quantized && !f->decided)
        options = " -emit=c", suffix = ".c";
    else if (f->quantized || f->statistics)
        options = " -emit=qdq", suffix = ".int8.onnx";
    else
        options = " -calib=DATA.npz -emit=qdq", suffix = ".int8.onnx";
    Buf b = buf_new(a);
    buf_text(&b, "qxc ");
    buf_shell(&b, next_readable(a, f->path));
    buf_fmt(&b, "%s -o ", options);
    buf_shell(&b, next_result(a, f->path, suffix));
    return buf_as_str(&b);
}
