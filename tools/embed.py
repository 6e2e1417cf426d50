#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py NAME INPUT.json OUTPUT.c: a JSON file as a C array called NAME, without its blanks; a mistake in it fails the build."""

import json
import sys


def main():
    name, source, target = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = json.dumps(json.load(file), ensure_ascii=True, separators=(",", ":"))
    data = text.encode() + b"\0"
    rows = [", ".join(str(byte) for byte in data[at:at + 24]) for at in range(0, len(data), 24)]
    with open(target, "w", encoding="utf-8") as file:
        file.write(f"/* made from {source.rsplit('/', maxsplit=1)[-1]} */\n#include \"api/openapi.h\"\n\n"
                   f"const char {name}[] = {{\n        " + ",\n        ".join(rows) + "\n};\n")


if __name__ == "__main__":
    main()
