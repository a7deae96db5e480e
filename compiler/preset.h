/* -preset=KIND: what suits one kind of network (preset.def), under all else that the user says. */
#ifndef QXC_COMPILER_PRESET_H
#define QXC_COMPILER_PRESET_H

#include "compiler/session.h"
#include "passes/network.h"

/* Adds the preset's options to the session's, and its rules before all others; tells what it added.
 * Nothing is done without -preset. */
ExitCode preset_apply(Session *s);

/* One line: options, then rules. The arena's. */
Str preset_text(Arena *a, NetworkKind k);

/* qxc list presets */
ExitCode preset_list(Session *s);

#endif
