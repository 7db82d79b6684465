"""python -m experiments --draw-only | --quick: every experiment, one after the other.

--draw-only draws all figures and tables again from stored data; --quick measures a small part of each anew, in out/.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from experiments.runner import Experiment


def experiments() -> list[Experiment]:
    """Return every experiment that is one of the runner's."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("*/__main__.py"))
    modules = [importlib.import_module(f"experiments.{name}.__main__") for name in folders]
    return [module.EXPERIMENT for module in modules if hasattr(module, "EXPERIMENT")]


def main() -> None:
    """Run all of them."""
    parser = argparse.ArgumentParser(prog="experiments", description=__doc__)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--draw-only", action="store_const", dest="flag", const="--draw-only")
    how.add_argument("--quick", action="store_const", dest="flag", const="--quick")
    flag = parser.parse_args().flag
    left_out = []
    for one in experiments():
        if flag == "--quick" and one.lacks:
            left_out.append(one.lacks)
        else:
            one.main([flag], None)
    # Measured before there was a runner; it stores and draws by itself.
    importlib.import_module("experiments.lower_bounds.__main__").main([flag])
    for why in left_out:
        print(f"not measured: {why}")


if __name__ == "__main__":
    main()
