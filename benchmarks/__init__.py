"""Benchmarks of reprl. `python -m benchmarks` lists them; `python -m benchmarks NAME [--json]` runs one."""
