"""Importing reprl is cheap: no kernel is compiled and no heavy optional package is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys

PROGRAM = """
import json, sys
from numba.core import event
from numba.core.dispatcher import Dispatcher

def kernels():
    return {
        f"{name}.{attribute}": value
        for name, module in list(sys.modules.items()) if name.split(".")[0] == "reprl"
        for attribute, value in vars(module).items() if isinstance(value, Dispatcher)
    }

def compiled():
    return sorted(name for name, kernel in kernels().items() if kernel.signatures)

with event.install_recorder("numba:compile") as recorder:
    import reprl
    after_import = {"compiled": compiled(), "events": len(recorder.buffer), "modules": sorted(sys.modules)}
    number = len(kernels())
    reprl.SharedKey(1).uniforms(1)
    print(json.dumps({**after_import, "kernels": number, "used": compiled(), "used_events": len(recorder.buffer)}))
"""


def test_import_compiles_nothing_and_loads_no_optional_package(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seen = json.loads(result.stdout)
    assert seen["kernels"] >= 8
    assert seen["compiled"] == []
    assert seen["events"] == 0
    heavy = {"gymnasium", "plotly", "matplotlib", "typer", "rich", "joblib", "scipy.stats", "quantecon", "pandas"}
    assert heavy.isdisjoint(seen["modules"])
    # The control: the first draw compiles, and both ways of looking notice it.
    assert "reprl.randomness.fill_words" in seen["used"]
    assert seen["used_events"] > 0
