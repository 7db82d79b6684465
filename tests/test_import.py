"""The front door is light: names load when they are used, and no kernel is compiled before it runs."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reprl

ROOT = Path(__file__).parent.parent
STUB = Path(reprl.__file__).with_suffix(".pyi")
DEEPER = [
    "artifacts.folder.save_run",
    "auditing.agents.audit_agents",
    "auditing.two_sample.same_world",
    "coupling.heavy_hitters.heavy_hitters",
    "coupling.statistical_query.statistical_query",
    "learning.adapters.env_learner",
    "learning.settings.Settings",
    "mdp.catalogue.hard_instance",
    "mdp.tabular.Solution",
    "mdp.tiers.Tiers",
    "mdp.tiers.check_niceness",
    "paper.rep_var_bandit.Decision",
    "randomness.DataStream",
    "randomness.STREAM_VERSION",
    "report.card.card",
]
"""Not at the top level."""
HEAVY = {
    "numpy",
    "numba",
    "scipy",
    "gymnasium",
    "jinja2",
    "joblib",
    "rich",
    "typer",
    "matplotlib",
    "pandas",
    "quantecon",
}

KERNELS = """
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
    names = [getattr(reprl, name) for name in reprl.__all__]
    after_import = {"compiled": compiled(), "events": len(recorder.buffer), "modules": sorted(sys.modules)}
    number = len(kernels())
    reprl.SharedKey(1).uniforms(1)
    print(json.dumps({**after_import, "kernels": number, "used": compiled(), "used_events": len(recorder.buffer)}))
"""


def run(program: str, cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout


def test_all_names_compile_nothing_and_load_no_optional_package(tmp_path):
    seen = json.loads(run(KERNELS, tmp_path))
    assert seen["kernels"] >= 8
    assert seen["compiled"] == []
    assert seen["events"] == 0
    heavy = {
        "gymnasium",
        "jinja2",
        "plotly",
        "matplotlib",
        "typer",
        "rich",
        "joblib",
        "scipy.stats",
        "quantecon",
        "pandas",
    }
    assert heavy.isdisjoint(seen["modules"])
    # The control: the first draw compiles, and both ways of looking notice it.
    assert "reprl.randomness.fill_words" in seen["used"]
    assert seen["used_events"] > 0


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        ("import reprl; dir(reprl)", set()),
        ("from reprl.cli.app import main; main(['--help'])", {"typer", "rich"}),
        ("from reprl.cli.app import main; main(['list', '--help'])", {"typer", "rich"}),
        ("from reprl.cli.app import main; main(['learn', '--help'])", {"typer", "rich"}),
        ("from reprl.cli.app import main; main(['--version'])", {"typer"}),
    ],
)
def test_the_front_door_loads_nothing_heavy(program, needed, tmp_path):
    out = run(f"{program}\nimport sys, json; print(); print(json.dumps(sorted(sys.modules)))", tmp_path)
    loaded = set(json.loads(out.splitlines()[-1]))
    assert loaded & HEAVY == needed
    assert "reprl" in loaded
    # The control: a name that needs arrays loads them.
    after = json.loads(run("import reprl, sys, json; reprl.Policy; print(json.dumps(sorted(sys.modules)))", tmp_path))
    assert "numpy" in after


def listed() -> dict[str, str]:
    """Each name in the list that runs and that type checkers see, with the module that it comes from."""
    lines = [node for node in ast.parse(STUB.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    assert all(line.level == 1 and line.names[0].asname == line.names[0].name for line in lines)  # `X as X` exports
    return {line.names[0].name: line.module for line in lines if line.module is not None}


def test_every_public_name_is_there_and_no_package_is_in_its_way():
    public = listed()
    assert dir(reprl) == reprl.__all__ == sorted(public)
    assert len(public) <= 34
    for name, module in public.items():
        value = getattr(reprl, name)
        assert not inspect.ismodule(value)
        assert getattr(value, "__module__", f"reprl.{module}") == f"reprl.{module}"  # listed where it is defined
    folder = Path(reprl.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules.isdisjoint(reprl.__all__)
    with pytest.raises(AttributeError, match="lern"):
        reprl.lern  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", DEEPER)
def test_what_few_people_need_is_imported_from_its_package(name):
    module, _, short = name.rpartition(".")
    assert short not in reprl.__all__
    assert hasattr(importlib.import_module(f"reprl.{module}"), short)


def test_a_star_import_gives_every_public_name(tmp_path):
    out = run("from reprl import *; import reprl; print(set(reprl.__all__) - set(globals()))", tmp_path)
    assert out.strip() == "set()"


def test_the_ways_of_calls_name_what_is_there() -> None:
    """Functions, classes and files in CONTRIBUTING's table of calls."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = page.partition("## How a call runs")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    files = [*(ROOT / "src" / "reprl").rglob("*.py")]
    code = "\n".join(file.read_text("utf-8") for file in files)
    named = [name for row in rows for name in re.findall(r"`([\w./]+)`", row.partition(" | ")[2])]
    assert len(named) > 20
    for name in named:
        if name.endswith(".py"):
            assert any(file.as_posix().endswith(f"/{name}") for file in files), name
        else:
            assert re.search(rf"\b{name.rpartition('.')[2]}\b", code), name
