"""Search beyond tables, measured: pairs of runs on classic control, and single runs elsewhere."""
