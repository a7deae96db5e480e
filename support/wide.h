/* WIDE before a function: it is compiled for several vector units of x86-64, and the loader takes
 * the widest that there is. For loops over plain numbers in files that the Makefile gives -O3. No
 * result depends on which: all do the same operations, and -ffp-contract=off keeps them apart. */
#ifndef QXC_SUPPORT_WIDE_H
#define QXC_SUPPORT_WIDE_H

#if defined(__x86_64__) && defined(__GLIBC__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#endif
