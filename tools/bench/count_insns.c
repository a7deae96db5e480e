/* A plugin for QEMU's emulator (its plugin interface, version 1): tells how many instructions the
 * emulated processor has executed. Build: cc -shared -fPIC -o count_insns.so count_insns.c; use:
 * qemu-system-arm -plugin count_insns.so -d plugin ... The functions are those of qemu-plugin.h,
 * which distributions do not ship. */
#include <inttypes.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct block;       /* of code, being translated */
struct instruction; /* in it */
enum { ADD_U64 = 0 };

size_t qemu_plugin_tb_n_insns(const struct block *b);
struct instruction *qemu_plugin_tb_get_insn(const struct block *b, size_t i);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*fn)(plugin_id, struct block *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct instruction *i, int op, void *number,
                                                uint64_t add);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*fn)(plugin_id, void *), void *data);
void qemu_plugin_outs(const char *text);

EXPORT int qemu_plugin_version = 1;

static uint64_t executed;

static void translated(plugin_id id, struct block *b) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(b); i++)
        qemu_plugin_register_vcpu_insn_exec_inline(qemu_plugin_tb_get_insn(b, i), ADD_U64,
                                                   &executed, 1);
}

static void finished(plugin_id id, void *data) {
    char line[64];
    (void)id, (void)data;
    snprintf(line, sizeof line, "instructions: %" PRIu64 "\n", executed);
    qemu_plugin_outs(line);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
