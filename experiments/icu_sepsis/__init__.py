"""ICU-Sepsis measured: what two teams come to, what it costs, and the benchmark's own baselines beside it."""
