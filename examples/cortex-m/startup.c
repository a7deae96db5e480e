/* What a Cortex-M runs before main: the vector table, data copied and cleared, the vector unit
 * switched on where the code was compiled for one. Talks through a debugger's semihosting, which
 * QEMU offers; on a board without one, leave out the two calls that mention it. */
#include <stdint.h>
#include <stdlib.h>

extern uint32_t stack_top[], data_start[], data_end[], data_load[], bss_start[], bss_end[];
extern void initialise_monitor_handles(void); /* of newlib: printf by semihosting */
int main(void);

void reset_handler(void);
void stop_handler(void);

void reset_handler(void) {
    const uint32_t *from = data_load;
    uint32_t *to;
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    *(volatile uint32_t *)0xE000ED88u = 0xFu << 20; /* CPACR: CP10 and CP11, the FPU or MVE */
    __asm__ volatile("dsb\n\tisb" : : : "memory");
#endif
    for (to = data_start; to < data_end; to++)
        *to = *from++;
    for (to = bss_start; to < bss_end; to++)
        *to = 0;
    initialise_monitor_handles();
    exit(main());
}

/* A fault ends the run: SYS_EXIT with a reason that is not "done". */
void stop_handler(void) {
    register uint32_t operation __asm__("r0") = 0x18, reason __asm__("r1") = 0x20023;
    __asm__ volatile("bkpt 0xAB" : : "r"(operation), "r"(reason) : "memory");
    for (;;) {
    }
}

/* newlib's exit calls these of crt files, which are not linked. */
void _init(void);
void _fini(void);
void _init(void) {}
void _fini(void) {}

typedef void Handler(void);
static Handler *const vectors[16] __attribute__((used, section(".vectors"))) = {
    (Handler *)(void *)stack_top,
    reset_handler,
    stop_handler, /* NMI */
    stop_handler, /* HardFault */
    stop_handler, /* MemManage */
    stop_handler, /* BusFault */
    stop_handler, /* UsageFault */
    stop_handler, /* SecureFault */
};
