# SPDX-License-Identifier: Apache-2.0
"""Makes the fixtures of lessor_fixtures.py known to every test here; the TAP that is counted comes from tools/pytest_tap.py."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
if os.path.exists(os.path.join(sys.path[0], "lessor_fixtures.py")):
    from lessor_fixtures import *  # noqa: F401,F403
