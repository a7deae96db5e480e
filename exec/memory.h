/* The memory of a program: where in the arena each buffer lies.
 *
 * Buffers alive at one time lie apart, but a result may lie over an operand that nobody reads
 * later, as far as the kernel allows it (bind_over). Deterministic; never fails. */
#ifndef QXC_EXEC_MEMORY_H
#define QXC_EXEC_MEMORY_H

#include "program/program.h"

/* Sets offset, first and last of the buffers in the arena, and arena_bytes. `keep_all`: nothing
 * shares memory. `least`: a small arena is worth a search. Scratch that makes kernels faster
 * shrinks as long as the arena takes more than tensors alive at one time, or than `enough` bytes,
 * unless that is 0; then it keeps what kernels are slow without. */
void program_plan(Arena *a, Program *p, bool keep_all, bool least, size_t enough);

/* What tensors take that are alive together, scratch apart, where results may only lie exactly in
 * the place of an operand: what planners count on that know of no partial overlap. */
size_t program_alive(Arena *a, Program *p);

/* By call: the bytes that no layout can do without while it runs, where scratch is the least that
 * kernels can do with. Sets first and last of the buffers. */
size_t *program_loads(Arena *a, Program *p);

/* The buffer whose memory an argument is, -1 for one outside of the arena. */
int memory_root(const Program *p, int buffer);
size_t memory_bytes(const Buffer *b);
/* Whether the result of a call may lie over its operand as far as the two buffers go, which it
 * sets, provided that nobody else reads the operand later. */
bool memory_overlay(const Program *p, const Call *call, const Overlay *o, int *under, int *over);

#endif
