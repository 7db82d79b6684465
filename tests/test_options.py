"""Options are listed alike wherever they are listed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import get_type_hints

import reprl
from reprl.auditing.audit import AuditOptions
from reprl.learning.settings import LearnOptions, Settings
from reprl.search.settings import SearchOptions, SearchSettings


def test_keyword_options_are_the_fields_of_settings():
    fields = {field.name for field in dataclasses.fields(Settings)}
    hints = get_type_hints(Settings)
    taken = {"preference": str | Sequence[int | str] | None}  # any sequence is taken, and kept as a tuple
    search = get_type_hints(SearchOptions)
    assert get_type_hints(LearnOptions) == {name: hints[name] for name in fields} | taken | search
    assert {field.name for field in dataclasses.fields(SearchSettings)} == {*search, "rho", "delta"}
    assert hints["preference"] == str | tuple[int | str, ...] | None
    assert LearnOptions.__required_keys__ == frozenset()


def test_audit_knows_the_options_of_every_learner():
    known = {name for entry in reprl.learners() for name in entry.options}
    own = {"rho", "agreement", "access"}  # parameters of the audit itself
    searched = set(get_type_hints(SearchOptions))
    assert set(get_type_hints(AuditOptions)) == known - own | {"max_samples"} | searched
