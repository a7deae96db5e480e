/* Included at the top of every file that tools/mutate rewrites. */
#ifndef TOOLS_MUTATE_SWITCH_H
#define TOOLS_MUTATE_SWITCH_H

extern int qxc_mutant; /* the mutant that runs; 0: none */
extern unsigned char
    *qxc_mutant_traced; /* a byte for each mutant, set once it is reached; or NULL */

#define QXC_MUTANT(k) (qxc_mutant_traced ? (qxc_mutant_traced[k] = 1, 0) : qxc_mutant == (k))

#endif
