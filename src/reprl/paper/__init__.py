"""The paper, one module for each algorithm, named as printed (docs/paper-map.md)."""
