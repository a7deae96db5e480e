/* What runtimes get wrong. A page says `wrong OP when PREDICATE then ...`; predicates are
 * functions, the rows of predicates.def. Of a node they ask as it is: float between
 * DequantizeLinear and QuantizeLinear, or on quantized types. */
#ifndef QXC_TARGET_FAULT_H
#define QXC_TARGET_FAULT_H

#include "ir/ops/op.h"

typedef struct FaultSite {
    const Node *n;
    OpCtx c;
    const Uses *uses; /* NULL: who reads the results is not known */
    int64_t opset;
    size_t operand; /* FAULT_OPERAND */
} FaultSite;

/* What a predicate is about, and so what is kept apart from the DequantizeLinear before it. */
typedef enum FaultPlace {
    FAULT_NODE,    /* a node that computes: its first operand that is dequantized */
    FAULT_OPERAND, /* one operand of it */
    FAULT_MOVED,   /* what conversions are moved past: the first operand */
} FaultPlace;

/* What is done about it; a fault may have several. */
typedef enum FaultRemedy {
    FAULT_GUARD = 1,       /* no fusion: a Sum of one operand stands between */
    FAULT_FLOAT = 2,       /* it is not quantized */
    FAULT_NO_QOP = 4,      /* it does not become its QOperator */
    FAULT_NO_INTEGERS = 8, /* it does not run on the integers as it is */
    FAULT_REFUSE = 16,     /* an error */
} FaultRemedy;

typedef struct Predicate {
    const char *name;
    FaultPlace at;
    bool (*holds)(const FaultSite *s);
    const char *means;
} Predicate;

typedef struct TargetFault {
    Str domain, op; /* op NULL: any */
    const Predicate *when[4];
    bool negated[4];
    size_t n_when; /* 0: always */
    FaultPlace at;
    unsigned then;
    const char *says; /* or NULL */
} TargetFault;

size_t predicate_count(void);
const Predicate *predicate_at(size_t i);
const Predicate *predicate_find(Str name); /* or NULL */

FaultSite fault_site(const Node *n, const Uses *uses);
bool fault_holds(const TargetFault *f, const FaultSite *s);

/* predicates*.c */
#define PREDICATE(name, at, means) bool predicate_##name(const FaultSite *s);
#include "target/predicates.def"
#undef PREDICATE

/* Elements of a stored integer; 32 of anything else. */
int stored_bits(const Value *v);
/* Constant integers, be it once a QuantizeLinear on them has been folded. */
bool is_stored_weight(const Value *v);

#endif
