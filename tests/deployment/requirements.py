"""The programs and packages that tests of the deployment need on the machine; tests that miss one are skipped."""

from __future__ import annotations

import shutil

CADDY = shutil.which("caddy")
INSTALL_CADDY = (
    "tests/deployment/test_balancer.py is skipped, because there is no Caddy: "
    "apt-get install --no-install-recommends caddy"
)

REPEATS_BODIES_FROM = (2, 11, 2)
"""Older versions answer 502 if a replica refuses the connection for a request with a body (caddyserver/caddy#7546)."""

INSTALL_HELM = (
    "The chart is not rendered, because helm-python-sdk or kubernetes-validate is not installed; "
    "the first has wheels for Linux on x86-64 only"
)
