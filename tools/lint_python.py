#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What can be said about Python files without anything beyond Python: they compile, and import nothing they do not use.

lint_python.py FILE...
"""

import ast
import sys
import warnings


def imported_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if alias.name != "*":
                    yield (alias.asname or alias.name).split(".")[0], node.lineno


def used_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # __all__ and quoted annotations


def faults(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            tree = ast.parse(text, path)
            compile(text, path, "exec")
        except (SyntaxError, SyntaxWarning, DeprecationWarning) as error:
            yield f"{path}: {error}"
            return
    used = set(used_names(tree))
    lines = text.splitlines()
    for name, line in imported_names(tree):
        if name not in used and "noqa" not in lines[line - 1] and "__future__" not in lines[line - 1]:
            yield f"{path}:{line}: {name} is imported and not used"
    functions = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if node.name in functions and not node.decorator_list:
                yield f"{path}:{node.lineno}: {node.name} is defined again (first in line {functions[node.name]})"
            functions[node.name] = node.lineno


def main(paths):
    found = [fault for path in paths for fault in faults(path)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
