"""Storage: strict JSON documents, atomic files, checkpoints."""
