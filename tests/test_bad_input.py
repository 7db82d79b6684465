"""Bad input, as attackers and tired people give it: one line, exit code 2, at once, before memory is taken.

What each case did before it was mended stands in docs/bad-input.md.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.auditing.two_sample import same_world
from reprl.errors import ReprlError
from reprl.mdp.counts import tally
from reprl.mdp.tiers import Tiers, check_niceness
from reprl.report.charts import Axis
from reprl.report.numbers import counted, number
from reprl.storage import documents
from tests.report_samples import audit_document, run_documents

GRID = reprl.make("gridworld-v0", horizon=2, size=2)


def refuse(call: Callable[[], Any], *parts: str) -> None:
    with pytest.raises(ReprlError) as caught:
        call()
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    for part in parts:
        assert part in text


# 14: arguments


COUNTS = reprl.GenerativeModel(GRID, 1).sample(1)
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "tiers, text": (lambda: Tiers.single("a", 2), "horizon must be a whole number"),  # type: ignore[arg-type]
    "tiers, negative": (lambda: Tiers.single(-1, 2), "horizon must be a whole number"),
    "tiers, huge": (lambda: Tiers.single(10**9, 10**9), "tiers must have at most 268435456 cells"),
    "niceness, counts": (lambda: check_niceness(1, 2, 0.5), "must be a Counts and a Tiers, got 1, 2"),  # type: ignore[arg-type]
    "niceness, tiers": (lambda: check_niceness(COUNTS, 2, 0.5), "must be a Counts and a Tiers"),  # type: ignore[arg-type]
    "counts, table": (lambda: reprl.Counts(1, 2), "outcomes must be a table of Outcomes, got 1"),  # type: ignore[arg-type]
    "counts, hits": (lambda: reprl.Counts(COUNTS.outcomes, [1]), "hits must be int64 of shape"),  # type: ignore[arg-type]
    "tally, shape": (lambda: tally([[0, 0, 0, 0, 0.5]], 5), "shape must be (H, S, A), got 5"),  # type: ignore[arg-type]
    "tally, sizes": (lambda: tally([[0, 0, 0, 0, 0.5]], (1, 2)), "shape must be (H, S, A), got (1, 2)"),  # type: ignore[arg-type]
    "tally, huge": (lambda: tally([[0, 0, 0, 0, 0.5]], (10**400, 1, 1)), "H must be a whole number"),
    "tally, ragged": (lambda: tally([[0, 0], [1]], (1, 1, 1)), "samples must be an array of real numbers"),
    "tally, text": (lambda: tally("rows", (1, 1, 1)), "samples must be an array of real numbers"),
    "same world": (lambda: same_world(1, COUNTS), "first must be a reprl.Counts, got 1"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types_are_refused(name: str) -> None:
    call, message = CALLS[name]
    refuse(call, message)


@pytest.mark.parametrize("schedule", [("a", "b", "c"), (1, 2, float("nan")), (float("inf"), 0, 0)])
def test_a_frozen_lake_that_pays_texts_is_refused(schedule: Any) -> None:
    refuse(
        lambda: reprl.make("gym:FrozenLake-v1", 5, reward_schedule=schedule),
        "published dynamics must list (probability, next state below 16, reward, ended)",
    )


HUGE: list[tuple[str, dict[str, Any]]] = [
    ("combination-lock-v0", {"n_states": 10**400}),
    ("combination-lock-v0", {"n_states": 10**4400}),
    ("combination-lock-v0", {"n_states": 10**8}),
    ("combination-lock-v0", {"n_actions": 10**9}),
    ("hard-instance-v0", {"n_states": 10**9}),
    ("hard-instance-v0", {"n_states": 2**28}),
    ("hard-instance-v0", {"horizon": 10**6, "n_states": 1000}),
    ("gridworld-v0", {"size": 10**5}),
    ("two-goals-v0", {"size": 10**5 + 1}),
    ("random-mdp-v0", {"n_states": 10**5, "n_actions": 100}),
    ("random-mdp-v0", {"horizon": 10**6, "stationary": False, "n_states": 100}),
    ("river-swim-v0", {"n_states": 10**9}),
    ("inventory-v0", {"capacity": 10**9}),
    ("maintenance-v0", {"n_states": 10**9}),
    ("queue-admission-v0", {"capacity": 10**9}),
]


@pytest.mark.parametrize(("id", "options"), HUGE)
def test_large_environments_are_refused_before_memory_is_taken(id: str, options: dict[str, Any]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refuse(lambda: reprl.make(id, **options))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_rewards_of_every_step_cannot_multiply_a_table_beyond_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprl.mdp.rows.MAX_ENTRIES", 100)
    kernel = np.full((3, 2, 3), 1 / 3)
    assert reprl.TabularMDP(kernel, np.zeros((5, 3, 2)), 0, 5).horizon == 5
    refuse(
        lambda: reprl.TabularMDP(kernel, np.zeros((6, 3, 2)), 0, 6),
        "over all steps must have at most 100 entries, got 108",
    )


# 14, 15: documents


def recipe_text() -> str:
    return json.dumps(run_documents(GRID, epsilon=0.5)["recipe"])


def test_numbers_beyond_floats_are_refused_in_every_document() -> None:
    text = recipe_text()
    changed = text.replace('"options": {"size": 2}', '"options": {"size": 1e999}')
    assert changed != text
    refuse(lambda: reprl.Recipe.from_json(changed), "recipe numbers must be finite, got '1e999'")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("environment", "labels", "grid"), []),
        (("environment", "horizon"), 1e999),
        (("rho",), [1]),
        (("environment", "horizon"), 10**400),
        (("samples",), 1e308),
        (("sequential",), True),
        (("p_value",), None),
        (("environment", "labels", "name"), "\ud800"),
    ],
)
def test_audits_with_impossible_fields_are_refused(path: tuple[str, ...], value: Any) -> None:
    document = audit_document(GRID)
    part = document
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    refuse(lambda: reprl.AuditReport.from_json(json.dumps(document)), "audit ")


def test_half_a_character_is_refused_wherever_it_stands() -> None:
    document = audit_document(GRID)
    for place in (document["options"], document["environment"]["options"]):
        place["\udfff"] = 1
        refuse(lambda: reprl.AuditReport.from_json(json.dumps(document)), "must be whole characters, got half of one")
        del place["\udfff"]
    refuse(lambda: documents.decode('["\ud800"]', "text"), "must be whole characters")
    assert documents.decode(r'["\ud83d\ude00", "é"]', "text") == ["😀", "é"]


def test_numbers_of_every_size_are_shown() -> None:
    assert number(5e-324) == "4.94 × 10⁻³²⁴"
    assert number(1.7e308) == "1.7 × 10³⁰⁸"
    assert number(-2.5e-7) == "-2.5 × 10⁻⁷"
    assert number(999_999_999.5) == "1 × 10⁹"
    assert counted(2**62, "samples") == ("4.61 × 10¹⁸", "4,611,686,018,427,387,904 samples")
    for top in (0.0, 5e-324, 1e-300, 0.3, 1e300):
        assert Axis.over([top], zero=True).ticks()


def test_names_given_twice_are_found_in_one_pass() -> None:
    """480 kB took 25 s when every name was counted in the whole list; now names are looked at once each."""

    class Name(str):
        looks = 0

        def __hash__(self) -> int:
            type(self).looks += 1
            return str.__hash__(self)

        def __eq__(self, other: object) -> bool:
            type(self).looks += 1
            return str.__eq__(self, other)

    names = [Name(f"k{i}") for i in range(2000)]
    pairs: list[tuple[str, Any]] = [(name, 1) for name in [*names, Name("k1999")]]
    refuse(lambda: documents._unique(pairs), "fields must be given once, got 'k1999' twice")
    assert Name.looks < 20 * len(names)
    text = "{" + ",".join(f'"k{i}":1' for i in range(48_000)) + ',"k47999":1}'
    refuse(lambda: reprl.Recipe.from_json(text), "recipe fields must be given once, got 'k47999' twice")


@pytest.mark.parametrize("item", ["[]", "{}", "1.5", '"ab"', "[1]"])
def test_a_text_that_would_fill_the_memory_is_refused_before_it_does(item: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(documents, "_MAX_MEMORY", 1 << 20)
    text = f"[{','.join([item] * 30_000)}]"
    refuse(lambda: documents.decode(text, "policy"), "policy must take at most 1 MiB of memory, got up to")
    assert len(documents.decode(f"[{','.join([item] * 2_000)}]", "policy")) == 2000


def test_the_bound_on_memory_is_one() -> None:
    """What a text takes, measured, is below what its brackets and commas say."""
    import tracemalloc

    items = ("[]", "{}", "1.5", "123456789", '{"a":{}}', "[[1.5]]", "null", "12", '"ab"', '"é"', '{"ab":12,"c":"d"}')
    texts = [f"[{','.join([item] * 20_000)}]" for item in items]
    texts += ["{" + ",".join(f'"{i:x}":{value}' for i in range(30_000)) + "}" for value in ("1", "1.5", "[]", '"ab"')]
    for text in texts:
        bound = documents.bound_memory(text) - sys.getsizeof(text)
        tracemalloc.start()
        value = documents.decode(text, "x")
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert used <= bound + 50_000, (text[:20], used, bound)
        del value


def test_documents_have_a_limit_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    with path.open("wb") as file:
        file.truncate(documents.MAX_BYTES + 1)
    refuse(lambda: reprl.Policy.load(path), "bytes")


def test_a_recipe_may_claim_any_number_of_actions_without_memory() -> None:
    """2³¹ actions took 16 GB: the order of preference was written out."""
    document = json.loads(recipe_text())
    document["environment"]["n_actions"] = 2**31
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert reprl.Recipe.from_json(json.dumps(document)).environment.n_actions == 2**31
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_visits_beyond_any_count_are_refused() -> None:
    document = run_documents(GRID, epsilon=0.5)["receipt"]
    document["visits"][0][0] = 10**400
    refuse(lambda: reprl.Receipt.from_json(json.dumps(document)), "receipt visits[0][0] must be a whole number from 0")


# 16


def test_counts_beyond_64_bits_are_shown_as_they_are(tmp_path: Path) -> None:
    documents_ = run_documents(GRID, rule="paper", epsilon=0.00061)
    samples = documents_["receipt"]["samples"]
    assert samples > 2**63 // 4 * 2 * 4 * 4
    page = reprl.write_report(documents_, tmp_path / "page.html").read_text(encoding="utf-8")
    cells = json.loads(page.partition('id="cells">')[2].partition("</script>")[0])
    (table,) = [table for table in cells["tables"] if table["label"] == "samples"]
    assert np.array(table["values"], dtype=object).min() == samples // 8
    assert f"{samples:,} observed transitions" in page
