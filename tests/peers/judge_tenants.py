# SPDX-License-Identifier: Apache-2.0
"""The published JSON Schema of tenants.json, judged by a validator that nobody here wrote (jsonschema_rs, which comes with
schemathesis): is it a schema; does it take every shipped file; and does it say of the good and the bad files in fuzz/corpus
what `lessor tenants check` says of them. TAP."""

import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")


def reenter():
    """Goes on in the virtual environment that has the validator."""
    made = subprocess.run([os.path.join(HERE, "setup-api"), os.environ.get("SIMGPU_TEST_VENV_DIR", "/tmp")],
                          stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        print("1..1\nnot ok 1 - the validator could not be installed (LESSOR_PEERS=off skips it)")
        return 1
    python = os.path.join(made.stdout.strip(), "bin", "python")
    os.execv(python, [python, os.path.abspath(__file__), "--judge"])


def refuse_twice(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key twice")
    return dict(pairs)


def is_valid(validator, path):
    with open(path, encoding="utf-8") as file:
        try:
            value = json.load(file, object_pairs_hook=refuse_twice)
        except ValueError:
            return False  # no JSON, which is no matter of schemas
    return validator.is_valid(value)


def is_taken(path):
    program = os.path.join(os.environ["LESSOR_BUILD_DIR"], "bin", "lessor")
    done = subprocess.run([program, "tenants", "check", path], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode not in (0, 78):
        raise RuntimeError(f"lessor tenants check {path}: {done.returncode}: {done.stderr}")
    return done.returncode == 0


def main():
    if os.environ.get("LESSOR_PEERS") == "off":
        print("1..0 # SKIP LESSOR_PEERS=off: other people's programs are not asked")
        return 0
    if sys.argv[1:] != ["--judge"]:
        return reenter()
    import jsonschema_rs  # pylint: disable=import-outside-toplevel,import-error

    with open(os.path.join(ROOT, "data", "tenants.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema_rs.meta.validate(schema)  # an exception is a failure: there is no plan yet
    validator = jsonschema_rs.Draft202012Validator(schema)
    rows = [(path, True) for path in sorted(glob.glob(os.path.join(ROOT, "data", "tenants.d", "*.json")))]
    rows += [(path, os.path.basename(path).startswith("good-"))
             for path in sorted(glob.glob(os.path.join(ROOT, "fuzz", "corpus", "tenants", "*.json")))]
    failed = 0
    for i, (path, wanted) in enumerate(rows, 1):
        by_schema, by_lessor = is_valid(validator, path), is_taken(path)
        good = by_schema == by_lessor == wanted
        failed += not good
        print(f"{'ok' if good else 'not ok'} {i} - {os.path.basename(path)} is {'taken' if wanted else 'refused'} by both")
        if not good:
            print(f"# taken by the schema: {by_schema}, by lessor: {by_lessor}")
    print(f"1..{len(rows)}")
    return 1 if failed or len(rows) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
