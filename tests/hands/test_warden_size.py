# SPDX-License-Identifier: Apache-2.0
"""S22: what has privileges is small enough to be read in an afternoon, and includes nothing that parses what strangers send."""

import glob
import os
import re

SOURCE = os.environ.get("LESSOR_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HANDS, HANDS_MAX = ("src/hands", "src/programs/lessor-warden"), 2000
CHECKPOINT, CHECKPOINT_MAX = ("src/programs/lessor-checkpoint",), 1200  # holds no policy of signals; started only by the hands
STARTER = os.path.join("src", "hands", "checkpointer.c")


def texts(folders):
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(SOURCE, folder, "*.[ch]"))):
            with open(path, encoding="utf-8") as f:
                yield path, re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), f.read(), flags=re.DOTALL)


def lines_of(folders):
    return {path: sum(1 for line in text.split("\n") if line.strip()) for path, text in texts(folders)}


def test_s22_hands_have_less_than_two_thousand_lines_of_code():
    lines = lines_of(HANDS)
    assert lines, "the sources are there"
    assert sum(lines.values()) < HANDS_MAX, lines


def test_s22_program_that_calls_the_driver_has_less_than_twelve_hundred_lines_of_code():
    lines = lines_of(CHECKPOINT)
    assert lines, "the sources are there"
    assert sum(lines.values()) < CHECKPOINT_MAX, lines


def test_s22_hands_include_no_http_json_sql_or_model_parser_and_start_one_program_only():
    for path, text in texts(HANDS + CHECKPOINT):
        for name in re.findall(r'#include [<"]([^>"]+)[>"]', text):
            assert not re.search(r"jansson|microhttpd|sqlite|curl|^api/|^store/|^estimate/|^client/", name), (path, name)
        starts = re.findall(r"\b(?:exec(?:l|v|ve|vp|lp|le|vpe|veat)|fexecve|posix_spawnp?|system|popen) *\(", text)
        assert starts == (["execv("] if path.endswith(STARTER) else []), path


def test_s22_hands_never_load_a_library():
    for path, text in texts(HANDS):
        assert not re.search(r"\bdl(?:m?open|sym)\b|dlfcn", text), path
