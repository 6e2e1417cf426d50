# SPDX-License-Identifier: Apache-2.0
"""S22: what has privileges is small enough to be read in an afternoon, and includes nothing that parses what strangers send."""

import glob
import os
import re

SOURCE = os.environ.get("LESSOR_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LINES_MAX = 2000


def texts():
    for folder in ("src/hands", "src/programs/lessor-warden"):
        for path in sorted(glob.glob(os.path.join(SOURCE, folder, "*.[ch]"))):
            with open(path, encoding="utf-8") as f:
                yield path, re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), f.read(), flags=re.DOTALL)


def test_s22_hands_have_less_than_two_thousand_lines_of_code():
    lines = {path: sum(1 for line in text.split("\n") if line.strip()) for path, text in texts()}
    assert lines, "the sources are there"
    assert sum(lines.values()) < LINES_MAX, lines


def test_s22_hands_include_no_http_json_sql_or_model_parser_and_start_no_program():
    for path, text in texts():
        for name in re.findall(r'#include [<"]([^>"]+)[>"]', text):
            assert not re.search(r"jansson|microhttpd|sqlite|curl|^api/|^store/|^estimate/|^client/", name), (path, name)
        assert not re.search(r"\b(exec(l|v|ve|vp|lp|le|vpe|veat)|fexecve|posix_spawnp?|system|popen) *\(", text), path
