/* A plugin for QEMU's emulator (its plugin interface, version 1): tells how many instructions the
 * emulated processor has executed, at the end and, where QEMU plays Linux for Arm64 or RISC-V, each
 * time that the program calls sched_yield. Build: cc -shared -fPIC -o count_insns.so count_insns.c;
 * use: qemu-system-arm -plugin count_insns.so -d plugin ... The functions are those of
 * qemu-plugin.h, which distributions do not ship. */
#include <inttypes.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct block;       /* of code, being translated */
struct instruction; /* in it */
enum { ADD_U64 = 0, SCHED_YIELD = 124 };

size_t qemu_plugin_tb_n_insns(const struct block *b);
struct instruction *qemu_plugin_tb_get_insn(const struct block *b, size_t i);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*fn)(plugin_id, struct block *));
void qemu_plugin_register_vcpu_insn_exec_inline(struct instruction *i, int op, void *number,
                                                uint64_t add);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id id,
                                          void (*fn)(plugin_id, unsigned, int64_t, uint64_t,
                                                     uint64_t, uint64_t, uint64_t, uint64_t,
                                                     uint64_t, uint64_t, uint64_t));
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

static void tell(const char *what) {
    char line[64];
    snprintf(line, sizeof line, "%s: %" PRIu64 "\n", what, executed);
    qemu_plugin_outs(line);
}

static void called(plugin_id id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
    (void)id, (void)cpu, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == SCHED_YIELD)
        tell("so far");
}

static void finished(plugin_id id, void *data) {
    (void)id, (void)data;
    tell("instructions");
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    qemu_plugin_register_atexit_cb(id, finished, NULL);
    return 0;
}
