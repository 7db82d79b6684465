"""Execution: workers, timeouts and progress; results never depend on who did the work."""
