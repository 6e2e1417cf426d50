#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the stub file of one library from its list of names.

A stub is weak: where a real function of that name exists, the linker takes that one, so no second list has to be kept.
Per-thread-stream variants (_ptsz, _ptds) jump to their plain function: nothing is computed here, so no stream differs from another.
"""
import sys

kind, names, out = sys.argv[1:4]
rows = [line.split() for line in open(names) if line.strip() and not line.startswith('#')]
symbols = {row[0] for row in rows}
text = ['/* Made by stubs.py; do not edit. */', '#include <stdint.h>', '#include "%s/stub.h"' % kind, '']
jumps = []
for row in rows:
    symbol = row[0]
    plain = symbol[:-5] if symbol.endswith(('_ptsz', '_ptds')) else None
    if plain in symbols:
        jumps.append((symbol, plain))
    else:
        text.append('STUB(%s)' % symbol)
text += ['', '#ifdef __aarch64__', '#define JUMP "b"', '#define PLT ""', '#else', '#define JUMP "jmp"', '#define PLT "@PLT"', '#endif']
for symbol, plain in jumps:
    text.append('__asm__(".text\\n.globl %s\\n.type %s, %%function\\n%s:\\n\\t" JUMP " %s" PLT "\\n.size %s, .-%s\\n");'
                % (symbol, symbol, symbol, plain, symbol, symbol))
if kind == 'cuda':
    text += ['', 'const struct cuda_name cuda_names[] = {']
    for symbol, base, version, flags in sorted(rows, key=lambda r: (r[1], int(r[2]), r[3])):
        text.append('        { "%s", "%s", %s, %s, (void (*)(void)) %s },' % (base, symbol, version, flags, symbol))
    text += ['};', 'const size_t n_cuda_names = sizeof cuda_names / sizeof *cuda_names;']
    decl = ['extern int %s(void);' % symbol for symbol, _ in jumps]
    text[3:3] = decl
text.append('')
open(out, 'w').write('\n'.join(text))
