#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of addresses (src/api/routes.c), the OpenAPI description and docs/api.md name the same addresses. TAP."""

import json
import os
import re
import sys

SOURCE = os.environ.get("LESSOR_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def main():
    table = {(method, path.replace("*", "{id}"), tuple(sorted(queries.split())))
             for method, path, queries in re.findall(r'\{ "([A-Z]+)", "(/[^"]*)", "([^"]*)", \w+, ', read("src", "api", "routes.c"))}
    described = set()
    doc = json.loads(read("src", "api", "openapi.json"))
    for path, item in doc["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            queries = tuple(sorted(p["name"] for p in operation.get("parameters", []) if p["in"] == "query"))
            described.add((method.upper(), path, queries))
    keyed = {path.replace("*", "{id}")
             for path in re.findall(r'\{ "POST", "(/[^"]*)", "[^"]*", \w+, [^,]*ROUTE_KEYED', read("src", "api", "routes.c"))}
    keyless = sorted(path for path in keyed if "410" not in doc["paths"][path]["post"]["responses"] or "Idempotency-Key" not in
                     [p.get("name") for p in doc["paths"][path]["post"]["parameters"]])
    version = re.search(r"version: '([^']+)'", read("meson.build"))[1]
    page = read("docs", "api.md")
    unnamed = sorted({path for _, path, _ in table if path.replace("{id}", "L17") not in page})
    results = [("routes.c names addresses", len(table) > 15, str(len(table))),
               ("every address is described, with its queries", table <= described, str(sorted(table - described))),
               ("nothing is described that is not there", described <= table, str(sorted(described - table))),
               ("what is asked again under its key can have ended since", keyed and not keyless, str(keyless)),
               ("the description has the program's version", doc["info"]["version"] == version, doc["info"]["version"]),
               ("docs/api.md names every address", not unnamed, str(unnamed))]
    print(f"1..{len(results)}")
    for i, (name, holds, words) in enumerate(results, 1):
        print(f"{'ok' if holds else 'not ok'} {i} - {name}" + ("" if holds else f"\n# {words}"))
    return 0 if all(holds for _, holds, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
