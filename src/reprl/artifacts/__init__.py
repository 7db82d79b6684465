"""Artifacts: what a run leaves behind and what a second team needs; recipe, receipt, run folder."""

from reprl.artifacts.folder import StoredRun as StoredRun
from reprl.artifacts.folder import load_run as load_run
from reprl.artifacts.folder import open_folder as open_folder
from reprl.artifacts.folder import save_run as save_run
from reprl.artifacts.receipt import Receipt as Receipt
from reprl.artifacts.recipe import Recipe as Recipe
