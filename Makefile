# qxc. `make` builds build/qxc; `make help` lists the rest. Needs GNU make.

BUILD   ?= build
PREFIX  ?= /usr/local
CC      ?= cc
# For the programs that write sources, which run on this machine whatever CC compiles for.
HOSTCC  ?= $(CC)
PYTHON  ?= python3
STRIP   ?= strip
SANITIZE ?=
T       ?=

CFLAGS ?= -O2 -g
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
MACOS   := $(strip $(foreach name,macos darwin,$(findstring $(name),$(MACHINE))))
# Mistakes that an attacker could use end the program: buffers are checked, addresses are random, the
# linker's tables are read-only (on macOS its linker sees to that unasked). HARDEN= leaves that out.
HARDEN ?= -fPIE -fstack-protector-strong \
          $(if $(SANITIZE),,$(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
PIE         = -pie -Wl,-z,relro,-z,now
HARDEN_LINK = $(if $(MACOS),,$(if $(strip $(HARDEN)),$(PIE)))
# Results must not depend on whether the compiler fuses a multiplication with an addition.
MATH    := -ffp-contract=off
# gcc does not see that functions which report an error return false, so it takes what they would
# have set on success for uninitialized; clang's own check and the sanitizers stand in.
WARN    := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
           -Wmissing-prototypes -Wvla -Wno-missing-field-initializers -Werror \
           $(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),,-Wno-maybe-uninitialized)
ifneq ($(SANITIZE),)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
ifeq ($(SANITIZE),fuzz)
SANFLAGS += -fsanitize=fuzzer-no-link
endif
ALL_CFLAGS = -std=gnu11 $(MATH) -I. -I$(BUILD) $(PARSER_I) $(PKG_CFLAGS) $(HARDEN) $(CFLAGS) $(SANFLAGS)
GENERATED_CFLAGS = $(ALL_CFLAGS) -w

VERSION    := $(shell cat VERSION)
PACKAGES   := libprotobuf-c libzip jansson
PKG_CONFIG ?= pkg-config
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS   := $(or $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null),-lprotobuf-c -lzip -ljansson)
LIBS        = $(PKG_LIBS) -lm -pthread
TEST_LIBS   = -lcmocka

# ---- What there is to compile: every .c file in the folders, nothing to register.

SOURCES := $(wildcard support/*.c ir/*.c kernels/*.c program/*.c ir/ops/*.c exec/*.c target/*.c passes/*.c passes/*/*.c \
             frontend/*/*.c backend/*/*.c compiler/*.c)
MAIN    := $(wildcard compiler/main.c)
TESTS   := $(wildcard test/unit/test_*.c)
FUZZERS := $(wildcard test/fuzz/fuzz_*.c)

# Kernel templates. Those of kernels, not of chunks that these share, become a C file each.
TEMPLATES := $(sort $(wildcard kernels/*/*.qk))
KERNELS   := $(shell grep -l '^//! kernel ' $(TEMPLATES))

LEXERS  := $(wildcard frontend/*/lexer.re)
PARSERS := $(wildcard frontend/*/parser.y)
PROTOS  := $(wildcard frontend/*/*.proto)

LEXER_C  := $(LEXERS:%.re=$(BUILD)/%.c)
PARSER_C := $(PARSERS:%.y=$(BUILD)/%.c)
PARSER_I := $(addprefix -I,$(sort $(dir $(PARSER_C))))
PROTO_C  := $(PROTOS:%.proto=$(BUILD)/%.pb-c.c)
KERNEL_C := $(patsubst %.qk,$(BUILD)/kernels/%.c,$(notdir $(KERNELS))) $(BUILD)/kernels_gen.c
KERNEL_H := $(BUILD)/kernels_gen.h
# Those whose template says `wide` again for x86 processors with wider vectors, which have no other numbers: nothing is contracted.
HAS_WIDE := $(if $(SANITIZE),,$(filter x86_64%,$(MACHINE)))
VECTORS      := $(if $(HAS_WIDE),avx2 avx512)
FLAGS_avx2   := -mavx2
FLAGS_avx512 := -mavx2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
WIDE_C   := $(if $(HAS_WIDE),$(patsubst %.qk,$(BUILD)/kernels/%.c,$(notdir $(shell grep -l '^//! wide$$' $(KERNELS)))))

# Texts that become part of the program: a folder, and the ending of its files.
TEXT_FOLDERS := lib target report
lib_TEXTS    := $(sort $(wildcard lib/*.qir))
target_TEXTS := $(sort $(wildcard target/*.target))
report_TEXTS := $(sort $(wildcard compiler/report/*.html compiler/report/*.css compiler/report/*.js))
TEXT_C       := $(TEXT_FOLDERS:%=$(BUILD)/texts/%.c)
HEADERS  := $(PARSER_C:.c=.h) $(PROTO_C:.c=.h) $(KERNEL_H) $(BUILD)/compiler/version.h $(BUILD)/compiler/commit.h

OBJECTS := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(MAIN),$(SOURCES))) \
           $(patsubst $(BUILD)/%.c,$(BUILD)/gen/%.o,$(LEXER_C) $(PARSER_C) $(PROTO_C) $(KERNEL_C) $(TEXT_C)) \
           $(foreach v,$(VECTORS),$(WIDE_C:$(BUILD)/%.c=$(BUILD)/gen/%.$v.o))
MAIN_O  := $(MAIN:%.c=$(BUILD)/obj/%.o)
LIBRARY := $(BUILD)/libqxc.a
# What include/qxc.h declares, and no other name: docs/library.md.
PUBLIC  := $(BUILD)/public/libqxc.a
PROGRAM := $(if $(MAIN),$(BUILD)/qxc)
UNITS   := $(TESTS:test/unit/%.c=$(BUILD)/unit/%)
REPLAYS := $(FUZZERS:test/fuzz/%.c=$(BUILD)/replay/%)

# One short line a command; V=1 shows the commands themselves.
V  ?=
Q  := $(if $(V),,@)
say = $(if $(V),,@printf '%-8s%s\n' '$(1)' '$@')

.PHONY: all lib headers units replays tracer fuzzers test quick skipped unit lit oracle replay fuzz demo bench accuracy mutate check-tools check-ports \
        check-san check-layers format check-format deps install install-files install-library library library-refused dist uninstall clean help node-c
.DELETE_ON_ERROR:
.SECONDARY: $(LEXER_C) $(PARSER_C) $(PROTO_C) $(KERNEL_C) $(HEADERS)
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

all: $(LIBRARY) $(PROGRAM)
lib: $(LIBRARY)
headers: $(HEADERS)
units: $(UNITS)
replays: $(REPLAYS)
tracer: $(BUILD)/grammar_trace
fuzzers: $(FUZZERS:test/fuzz/%.c=$(BUILD)/libfuzzer/%)

$(LIBRARY): $(OBJECTS) $(BUILD)/sources
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $(OBJECTS)

$(BUILD)/qxc: $(MAIN_O) $(LIBRARY)
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(SANFLAGS) $(HARDEN_LINK) $(LDFLAGS) -o $@ $(MAIN_O) $(LIBRARY) $(LIBS)

# ---- Compiling. Files that change when the flags do, or when a source comes or goes.

$(BUILD)/flags: NOW = $(CC) $(ALL_CFLAGS) $(WARN) $(LDFLAGS)
$(BUILD)/sources: NOW = $(OBJECTS)
$(BUILD)/templates: NOW = $(TEMPLATES)
$(BUILD)/texts.list: NOW = $(foreach f,$(TEXT_FOLDERS),$($f_TEXTS))
$(BUILD)/flags $(BUILD)/sources $(BUILD)/templates $(BUILD)/texts.list: FORCE | $(BUILD)/deps.ok
	@echo '$(NOW)' | cmp -s - $@ || echo '$(NOW)' > $@
.PHONY: FORCE

# Loops over large constants, which the default of -O2 does not make vectors of.
$(addprefix $(BUILD)/obj/,support/rows.o passes/params.o passes/params_fit.o): CFLAGS += $(if $(SANITIZE),,-O3)

# A file of tools/mutate goes before the one that it was made of.
$(BUILD)/obj/%.o: $(BUILD)/mutated/%.c $(BUILD)/flags | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(WARN) -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(WARN) -MMD -MP -c -o $@ $<

# What our own tools generate obeys our warnings; what lemon and protoc-c write does not.
$(BUILD)/gen/%/lexer.o: $(BUILD)/%/lexer.c $(BUILD)/flags | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(WARN) -MMD -MP -c -o $@ $<

KERNEL_LEVEL ?= $(if $(filter fuzz,$(SANITIZE)),-O1,-O3)
KERNEL_CFLAGS = $(ALL_CFLAGS) $(KERNEL_LEVEL) -Wall -Wextra -Wno-unused-function -Werror

$(KERNEL_C:$(BUILD)/%.c=$(BUILD)/gen/%.o): $(BUILD)/gen/%.o: $(BUILD)/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KERNEL_CFLAGS) $(if $(HAS_WIDE),-DQK_HAS_WIDE) -MMD -MP -c -o $@ $<

define wide_rule
$(BUILD)/gen/%.$1.o: $(BUILD)/%.c $(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,CC)
	$$(Q)$$(CC) $$(KERNEL_CFLAGS) -DQK_VECTORS=$1 $$(FLAGS_$1) -MMD -MP -c -o $$@ $$<
endef
$(foreach v,$(VECTORS),$(eval $(call wide_rule,$v)))

$(BUILD)/gen/%.o: $(BUILD)/%.c $(BUILD)/flags | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(GENERATED_CFLAGS) -MMD -MP -c -o $@ $<

# ---- Generated sources.

$(BUILD)/%/lexer.c: %/lexer.re | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(call say,RE2C)
	$(Q)re2c -W -Werror --no-debug-info -o $@ $<

$(BUILD)/%/parser.c $(BUILD)/%/parser.h: %/parser.y | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(call say,LEMON)
	$(Q)lemon -q -l -d$(@D) $<

$(BUILD)/compiler/version.h: VERSION
	@mkdir -p $(@D)
	$(Q)printf '#define QXC_VERSION "%s"\n' '$(VERSION)' > $@

# The commit is told by -version alone; what is emitted depends on the release.
$(BUILD)/compiler/commit.h: NOW = $(if $(wildcard .git),$(patsubst %, (%),$(shell git rev-parse --short=9 HEAD 2>/dev/null)))
$(BUILD)/compiler/commit.h: FORCE
	@mkdir -p $(@D)
	@echo '#define QXC_COMMIT "$(NOW)"' | cmp -s - $@ || echo '#define QXC_COMMIT "$(NOW)"' > $@

$(BUILD)/%.pb-c.c $(BUILD)/%.pb-c.h: %.proto | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(call say,PROTOC)
	$(Q)protoc-c --proto_path=. --c_out=$(BUILD) $<

$(BUILD)/kernelgen: $(wildcard tools/kernelgen/*.c tools/kernelgen/*.h) $(BUILD)/flags
	$(call say,CC)
	$(Q)$(HOSTCC) -std=gnu11 $(CFLAGS) $(SANFLAGS) $(WARN) -I. -o $@ $(filter %.c,$^)

# All at once; files that stay the same keep their age, so only what changed is compiled again.
$(BUILD)/kernels.done: $(BUILD)/kernelgen $(TEMPLATES) $(BUILD)/templates
	@mkdir -p $(BUILD)/kernels
	$(call say,KERNELS)
	$(Q)ASAN_OPTIONS=detect_leaks=0 $(BUILD)/kernelgen $(BUILD) $(TEMPLATES)
	@touch $@
$(KERNEL_C) $(KERNEL_H): $(BUILD)/kernels.done ;

$(BUILD)/embed: tools/embed.c $(BUILD)/flags
	$(call say,CC)
	$(Q)$(HOSTCC) -std=gnu11 $(CFLAGS) $(SANFLAGS) $(WARN) -o $@ $<

.SECONDEXPANSION:
$(TEXT_C): $(BUILD)/texts/%.c: $(BUILD)/embed $(BUILD)/texts.list $$($$*_TEXTS)
	@mkdir -p $(@D)
	$(call say,EMBED)
	$(Q)$(BUILD)/embed $*_texts $($*_TEXTS) > $@

# ---- What has to be installed first; looked at once per build folder.

$(BUILD)/deps.ok: tools/install_deps.sh
	@mkdir -p $(BUILD)
	@tools/install_deps.sh --check build
	@touch $@

deps:
	tools/install_deps.sh

# ---- The C library: the program's objects in one, with the library's own streams in place of C's.

LD      ?= ld
OBJCOPY ?= objcopy

$(BUILD)/public/qxc.o: library/qxc.c include/qxc.h $(BUILD)/compiler/version.h $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(WARN) -c -o $@ $<

$(PUBLIC): $(BUILD)/public/qxc.o $(LIBRARY) library/redefined library/exported
	@rm -f $@
	$(call say,AR)
	$(Q)$(LD) -r -u session_run -o $(@D)/inner.o $(LIBRARY)
	$(Q)$(OBJCOPY) --strip-debug --redefine-syms=library/redefined $(@D)/inner.o
	$(Q)$(LD) -r -o $(@D)/libqxc.o $(BUILD)/public/qxc.o $(@D)/inner.o
	$(Q)$(OBJCOPY) --keep-global-symbols=library/exported $(@D)/libqxc.o
	$(Q)$(AR) rcsD $@ $(@D)/libqxc.o
	@rm $(@D)/inner.o $(@D)/libqxc.o

library: $(if $(MACOS),library-refused,$(PUBLIC))
library-refused:
	@echo 'make library: not for macOS, whose tools cannot hide names as GNU ld and objcopy do: docs/library.md' >&2; exit 1
install-library: library
	install -d '$(INSTALLED)/include' '$(INSTALLED)/lib/pkgconfig'
	install -m 644 include/qxc.h '$(INSTALLED)/include/qxc.h'
	install -m 644 $(PUBLIC) '$(INSTALLED)/lib/libqxc.a'
	sed 's/@VERSION@/$(VERSION)/' cmake/libqxc.pc.in > '$(INSTALLED)/lib/pkgconfig/libqxc.pc'

# ---- The sources as one file, the same bytes for one commit. What is not committed is not in it, which is refused.

DIST = $(BUILD)/qxc-$(VERSION).tar.gz
dist:
	@git rev-parse --git-dir >/dev/null 2>&1 || { echo 'make dist: this is no git checkout' >&2; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo 'make dist: commit first; these would be missing:' >&2; git status --short >&2; exit 1; }
	@mkdir -p $(BUILD)
	$(Q)git -c core.autocrlf=false -c tar.umask=0022 archive --format=tar --prefix=qxc-$(VERSION)/ HEAD > $(DIST).part
	$(Q)gzip -9n < $(DIST).part > $(DIST)
	@rm $(DIST).part
	@cd $(BUILD) && sha256sum $(notdir $(DIST)) | tee $(notdir $(DIST)).sha256

# ---- Tests. test/run.sh builds what it needs.

$(BUILD)/unit/%: test/unit/%.c $(LIBRARY) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(WARN) -MMD -MP -o $@ $< $(LIBRARY) $(TEST_LIBS) $(LIBS)

FUZZ_COMMON = test/fuzz/fuzz.c test/fuzz/fuzz.h
$(BUILD)/replay/%: test/fuzz/%.c test/fuzz/replay.c $(FUZZ_COMMON) $(LIBRARY) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(WARN) -o $@ $(filter %.c,$^) $(LIBRARY) $(LIBS)

$(BUILD)/libfuzzer/%: test/fuzz/%.c $(FUZZ_COMMON) $(LIBRARY) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(WARN) -fsanitize=fuzzer -o $@ $(filter %.c,$^) $(LIBRARY) $(LIBS)

# T seconds for each target, or TARGET=qir,onnx for those; what was found is in build/fuzz/found.
fuzz:
	@+MAKE='$(MAKE)' TARGET='$(TARGET)' PYTHON='$(PYTHON)' test/fuzz/run.sh '$(or $(T),60)'

# The reader with a parser that tells which rules it reduces: tools/check_grammar.py.
$(BUILD)/grammar_trace: tools/grammar_trace.c $(BUILD)/frontend/qir/parser.c $(LIBRARY) $(BUILD)/flags
	$(call say,CC)
	$(Q)$(CC) $(GENERATED_CFLAGS) -DQIR_TRACE -o $@ $(filter %.c,$^) $(LIBRARY) $(LIBS)

RUN_TESTS = MAKE='$(MAKE)' BUILD='$(BUILD)' CC='$(CC)' PYTHON='$(PYTHON)' \
            SANITIZE='$(SANITIZE)' ROUNDTRIP='$(ROUNDTRIP)' test/run.sh
test:
	@+$(RUN_TESTS) all '$(T)'
quick skipped unit lit oracle replay:
	@+$(RUN_TESTS) $@ '$(T)'

# ONNX's operator tests through emitted C, all of them, by gcc and clang under sanitizers: docs/operators.md counts them.
node-c:
	@+NODE_C=all $(RUN_TESTS) oracle test_node_ops_c

check-san:
	@+$(MAKE) BUILD=build/san SANITIZE=1 test

# clang builds it with sanitizers: the same bytes of forty models, what was once found, five seconds of each fuzz target.
check-tools:
	@+BUILD='$(BUILD)' CC='$(CC)' MAKE='$(MAKE)' PYTHON='$(PYTHON)' tools/check_tools.sh

# zig builds it for musl, where it runs, and for macOS, where it is linked.
check-ports:
	@+BUILD='$(BUILD)' CC='$(CC)' MAKE='$(MAKE)' PYTHON='$(PYTHON)' tools/check_ports.sh

check-layers: $(LIBRARY)
	@tools/check_layers.sh
	@tools/check_symbols.py $(BUILD)

format:
	@tools/format.sh
check-format:
	@tools/format.sh --check

# Speed, sizes and instructions of emitted C beside others: docs/benchmarks.md. ROUNDS=5, MODELS="kws ad",
# PAGE=FILE; SECTIONS=all or the title of one.
bench: all
	@BUILD='$(BUILD)' PYTHON='$(PYTHON)' PAGE='$(PAGE)' ROUNDS='$(ROUNDS)' MODELS='$(MODELS)' \
	    SECTIONS='$(SECTIONS)' tools/bench/run.sh

# What quantization costs, by itself and beside other quantizers: docs/accuracy.md, docs/peers.md. MODELS="vit cnn",
# TOOLS="nncf qxc", SEEDS=3; what was measured is kept in build/peers.
accuracy: all
	@BUILD='$(BUILD)' PYTHON='$(PYTHON)' MODELS='$(MODELS)' TOOLS='$(TOOLS)' SEEDS='$(SEEDS)' tools/peers/run.sh

# Changes N places of passes/, ir/quant* and ir/ops/ one at a time; how many changes do the tests notice?
mutate:
	@+MAKE='$(MAKE)' CC='$(CC)' PYTHON='$(PYTHON)' BUILD='$(BUILD)' tools/mutate/run.sh \
	    $(addprefix -n ,$(N)) $(addprefix -seed ,$(SEED)) $(addprefix -tests ,$(TESTED)) $(if $(AGAIN),-again)

demo:
	@tools/install_deps.sh --if-possible build
	@+$(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell getconf _NPROCESSORS_ONLN)) all
	@BUILD='$(BUILD)' tools/demo.sh

# The program, and how CMake and pkg-config find it from wherever it is put.
install: all
	@+$(MAKE) --no-print-directory install-files
INSTALLED = $(DESTDIR)$(PREFIX)
LICENCES  = LICENSE LICENSE-0BSD NOTICE
# What the program itself prints of its command line: `qxc help man`.
SHELL_man  = share/man/man1/qxc.1
SHELL_bash = share/bash-completion/completions/qxc
SHELL_zsh  = share/zsh/site-functions/_qxc
SHELL_fish = share/fish/vendor_completions.d/qxc.fish
SHELL_KINDS = man bash zsh fish
install-files: # of what is built
	install -d '$(INSTALLED)/bin' '$(INSTALLED)/lib/cmake/qxc' '$(INSTALLED)/lib/pkgconfig' '$(INSTALLED)/share/doc/qxc'
	install -m 755 $(PROGRAM) '$(INSTALLED)/bin/qxc'
	$(STRIP) '$(INSTALLED)/bin/qxc'
	install -m 644 cmake/qxcConfig.cmake '$(INSTALLED)/lib/cmake/qxc/qxcConfig.cmake'
	sed 's/@VERSION@/$(VERSION)/' cmake/qxcConfigVersion.cmake.in > '$(INSTALLED)/lib/cmake/qxc/qxcConfigVersion.cmake'
	sed 's/@VERSION@/$(VERSION)/' cmake/qxc.pc.in > '$(INSTALLED)/lib/pkgconfig/qxc.pc'
	install -m 644 $(LICENCES) '$(INSTALLED)/share/doc/qxc'
	! $(PROGRAM) -version >/dev/null 2>&1 || { $(foreach k,$(SHELL_KINDS),install -d '$(INSTALLED)'/$(dir $(SHELL_$k)) && \
	    $(PROGRAM) help $k > '$(INSTALLED)/$(SHELL_$k)' && )true; } # a program for another machine cannot tell

# What install-files put down, and the folders that are its own once they are empty.
uninstall:
	rm -f '$(INSTALLED)/include/qxc.h' '$(INSTALLED)/lib/libqxc.a' '$(INSTALLED)/lib/pkgconfig/libqxc.pc' '$(INSTALLED)/bin/qxc' '$(INSTALLED)/lib/cmake/qxc/qxcConfig.cmake' \
	    '$(INSTALLED)/lib/cmake/qxc/qxcConfigVersion.cmake' '$(INSTALLED)/lib/pkgconfig/qxc.pc' \
	    $(LICENCES:%='$(INSTALLED)/share/doc/qxc/%') $(foreach k,$(SHELL_KINDS),'$(INSTALLED)/$(SHELL_$k)')
	for d in lib/cmake/qxc share/doc/qxc; do \
	    rmdir '$(INSTALLED)'/$$d 2>/dev/null || true; done

clean:
	rm -rf $(BUILD)

help:
	@echo 'make               build/qxc and build/libqxc.a (CC=clang-19, CFLAGS=..., BUILD=..., V=1)'
	@echo 'make test          everything: unit, lit, oracle, layers, format; T=passes/quantize: a part'
	@echo 'make quick         a part of that: two minutes where qxc is built'
	@echo 'make skipped       what the last run skipped, with another QXC_SHARED=DIR, say; neither takes a T'
	@echo 'make unit lit oracle replay   one kind of test; T=NAME: a part of it'
	@echo 'make node-c        all of ONNX'"'"'s operator tests through C, by gcc and clang under sanitizers'
	@echo 'make fuzz T=60     libFuzzer on each target of test/fuzz, T seconds each; TARGET=qir,onnx'
	@echo 'make check-san     all tests under AddressSanitizer and UBSan, in build/san'
	@echo 'make accuracy      qxc beside other quantizers: docs/peers.md. MODELS=, TOOLS=, SEEDS='
	@echo 'make mutate        does a test notice small changes of passes and operators? N=200 SEED=1: docs/hacking.md'
	@echo 'make check-tools   clang and sanitizers: the same bytes of forty models, replays, a little of fuzz'
	@echo 'make check-ports   zig builds it for musl and for macOS: what compiles, links and, for musl, runs'
	@echo 'make demo          the tour'
	@echo 'make bench         measure emitted C beside others: docs/benchmarks.md'
	@echo 'make format        clang-format all sources; check-format, check-layers: check only'
	@echo 'make deps          install what the build and the tests need (Debian, Ubuntu)'
	@echo 'make install       PREFIX=/usr/local, DESTDIR=: the program, its CMake package and pkg-config file'
	@echo 'make library       build/public/libqxc.a, to be called from C: docs/library.md; make install-library'
	@echo 'make dist          the sources as build/qxc-VERSION.tar.gz, the same bytes for one commit'
	@echo 'make uninstall     takes just these away again'

-include $(OBJECTS:.o=.d) $(MAIN_O:.o=.d) $(UNITS:=.d)
