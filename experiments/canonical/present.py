"""Figures and tables of the canonical learner; reads stored data only."""
from pathlib import Path
from typing import Any
Data = dict[str, Any]
def draw(data: Data, folder: Path) -> None: ...
def tables(data: Data) -> str: return ""
def insert_tables(page: Path, data: Data) -> None: ...
