"""The documentation as a site: docs/, the examples and the docstrings, put together and built by Sphinx."""
