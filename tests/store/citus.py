"""Where the tests on a Citus cluster find it: MAINSPRING_CITUS_URL names a database on a coordinator.

The schema `mainspring` in it is dropped and made anew, once, and what moves in it is emptied for each life.
"""

from __future__ import annotations

import os

import pytest

CITUS_URL = os.environ.get("MAINSPRING_CITUS_URL", "")

on_citus = [
    pytest.mark.citus,
    pytest.mark.skipif(not CITUS_URL, reason="MAINSPRING_CITUS_URL names no Citus coordinator"),
    pytest.mark.xdist_group("citus"),
]
