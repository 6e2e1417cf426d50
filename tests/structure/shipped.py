#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What every shipped file of a tenant owes (data/tenants.d), and docs/tenants.md's table of them.

    shipped.py DATA PAGE
"""

import glob
import json
import os
import re
import sys


def faults(name, path, tenant, rows):
    if os.path.basename(path) != name + ".json":
        yield f"lies in {os.path.basename(path)}: one file a tenant, called like it"
    for key in ("title", "match", "priority", "cannot", "source"):
        if not tenant.get(key):
            yield f"has no {key}"
    for i, way in enumerate(tenant.get("ways_out", [])):
        if way["by"] in ("restart", "checkpoint") and not way.get("drops"):
            yield f"way out {i + 1} loses something, and does not say what (drops)"
        if way["by"] == "exec":
            yield f"way out {i + 1} would need a user, whom nobody here knows"
    if tenant.get("protected") and tenant.get("ways_out"):
        yield "is protected, and has ways out"
    for key in ("disabled", "headers_from", "proxy"):
        if key in tenant:
            yield f"has {key}, which is an administrator's to say"
    row = rows.get(name)
    if row is None:
        yield "has no row in the page"
        return
    default = [way["by"] for way in tenant.get("ways_out", []) if way["by"] == "http" and way.get("documented") and not way.get("drops")]
    if (row["default"] == "yes") != bool(default):
        yield f"is in the page with {row['default']!r}, and has {default or 'nothing'} that is used by itself"
    if row["checked"] != tenant.get("checked_against", "no version known"):
        yield f"is in the page with {row['checked']!r}, and says {tenant.get('checked_against')!r}"


def main(argv):
    with open(argv[2], encoding="utf-8") as file:
        table = re.findall(r"^\| `([a-z0-9.-]+)` \| ([^|]+) \| (yes|no) \| ([^|]+) \| ([^|]+) \|$", file.read(), re.M)
    rows = {name: {"default": default, "checked": checked.strip()} for name, _, default, checked, _ in table}
    paths, count, failed = sorted(glob.glob(os.path.join(argv[1], "*.json"))), 0, 0
    seen = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            tenants = json.load(file)["tenants"]
        for name, tenant in tenants.items():
            count += 1
            seen.add(name)
            found = list(faults(name, path, tenant, rows))
            failed += bool(found)
            print(f"{'not ok' if found else 'ok'} {count} - {name} says what it owes")
            for line in found:
                print(f"# {name} {line}")
    count += 1
    extra = sorted(set(rows) - seen)
    failed += bool(extra) or not seen
    print(f"{'not ok' if extra or not seen else 'ok'} {count} - the page has no row without a file")
    for name in extra:
        print(f"# {name}")
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
