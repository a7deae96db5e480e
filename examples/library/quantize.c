/* Quantizes a model from C: quantize MODEL DATA.npz RESULT.onnx */
#include <qxc.h>
#include <stdio.h>

static int say(const QxcResult *r) {
    if (!r) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    fputs(qxc_messages(r, NULL), stderr);
    fputs(qxc_output(r, NULL), stdout);
    return qxc_code(r) != QXC_DONE;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: quantize MODEL DATA.npz RESULT.onnx\n");
        return 2;
    }
    const char *compile[] = {argv[1], "-calib", argv[2], "-emit=qdq", "-o", argv[3]};
    QxcResult *made = qxc_call(sizeof compile / sizeof *compile, compile);
    int failed = say(made);
    qxc_free(made);
    if (failed)
        return 1;
    const char *look[] = {"info", "-json", argv[3]};
    QxcResult *seen = qxc_call(sizeof look / sizeof *look, look);
    failed = say(seen);
    qxc_free(seen);
    return failed;
}
