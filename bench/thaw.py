# SPDX-License-Identifier: Apache-2.0
"""The way back: from the release of what a filler gave way to until the filler is at work again (see handover.py)."""

import handover


def measure(samples, quick):
    return handover.report("thaw", "back", samples, quick)
