# SPDX-License-Identifier: Apache-2.0
"""Makes the fixtures of brain.py known to every test here; the TAP that is counted comes from tools/pytest_tap.py."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from brain import folder, things  # noqa: E402,F401
