"""BEYOND TABLES: policies proposed by the shared seed, chosen by few decisions about mean returns (docs/search.md)."""
