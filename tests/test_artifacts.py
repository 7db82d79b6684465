"""Recipes, receipts and run folders: strict to read, whole on disk, and tied to each other."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.artifacts.folder import load_run, open_folder
from reprl.artifacts.receipt import Receipt, commit_data_seed
from reprl.artifacts.recipe import Recipe
from reprl.artifacts.verify import compare_policies, load_evidence
from reprl.errors import ReprlError
from reprl.learning.result import LearnResult
from reprl.learning.settings import Settings
from reprl.mdp.policy import Policy
from reprl.randomness import STREAM_VERSION
from reprl.sources.environment import describe
from reprl.storage.documents import canonical

EPISODES: Any = {"access": "episodic", "rule": "paper", "constants": "scaled", "epsilon": 1.0}

OPTIONS: dict[str, Any] = {"rule": "paper", "constants": "scaled", "samples": 10**6}


def run(data_seed: int = 1, shared_seed: int = 7, **options) -> LearnResult:
    mdp = reprl.make("gridworld-v0", horizon=3, size=2, slip=0.1)
    return reprl.learn(mdp, shared_seed=shared_seed, data_seed=data_seed, **{**OPTIONS, **options})


@pytest.fixture(scope="module")
def result() -> LearnResult:
    return run()


@pytest.fixture(scope="module")
def other() -> LearnResult:
    return run(data_seed=2, shared_seed=8)


@pytest.fixture(scope="module")
def episodic() -> LearnResult:
    mdp = reprl.make("river-swim-v0", horizon=3, n_states=3)
    return reprl.learn(mdp, shared_seed=7, data_seed=1, **EPISODES, scale=0.02)


@pytest.fixture(scope="module")
def soft_run() -> LearnResult:
    """A run of the default rule, sure of itself; its teams differ here and there."""
    mdp = reprl.make("random-mdp-v0", horizon=3, n_states=4, n_actions=3)
    return reprl.learn(mdp, shared_seed=11, data_seed=1, preference=("a2", "a0", 1))


@pytest.fixture(scope="module")
def undecided() -> LearnResult:
    """A run whose samples ran out."""
    return reprl.learn("inventory-v0", shared_seed=7, data_seed=1, max_samples=4_000)


def put(directory: Path, result: LearnResult, **options) -> None:
    with open_folder(directory, result.recipe, **options) as folder:
        folder.write(result)


# Recipes


def test_a_recipe_says_everything_that_two_teams_share(result):
    document = json.loads(result.recipe.to_json())
    assert document["environment"]["id"] == "gridworld-v0"
    assert document["environment"]["options"] == {"size": 2, "slip": 0.1}
    assert document["environment"]["digest"] == reprl.make("gridworld-v0", horizon=3, size=2, slip=0.1).digest
    assert document["settings"] == Settings(**OPTIONS).to_dict()
    assert (document["shared_seed"], document["stream_version"]) == (7, STREAM_VERSION)
    assert document["package_version"] == reprl.__version__
    assert "data_seed" not in result.recipe.to_json()


def test_the_digest_is_that_of_the_canonical_document_without_package_version(result):
    recipe = result.recipe
    document = recipe.to_dict()
    del document["package_version"]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert recipe.digest == hashlib.sha256(text.encode()).hexdigest()
    assert replace(recipe, package_version="9.9").digest == recipe.digest
    assert replace(recipe, shared_seed=8).digest != recipe.digest


def test_numbers_of_any_type_give_one_digest(result):
    plain = Recipe.plan(result.environment, Settings(epsilon=1.0, constants="scaled", samples=8, rule="paper"), 7)
    numbers: Any = {"epsilon": np.int32(1), "constants": "scaled", "samples": np.int64(8), "rule": "paper"}
    odd = Recipe.plan(result.environment, Settings(**numbers), np.uint64(7))  # type: ignore[arg-type]
    assert odd.digest == plain.digest
    assert Recipe.from_json(odd.to_json()).digest == plain.digest


def test_a_recipe_survives_its_file(result, episodic, soft_run, undecided, tmp_path):
    for recipe in (result.recipe, episodic.recipe, soft_run.recipe, undecided.recipe):
        path = recipe.save(tmp_path / "recipe.json")
        assert Recipe.load(path) == recipe
        assert Recipe.load(path).digest == recipe.digest


def test_the_second_team_gets_the_same_policy_from_its_own_data(soft_run):
    result = soft_run
    second = Recipe.from_json(result.recipe.to_json()).learn(data_seed=2)
    assert second.recipe.digest == result.recipe.digest
    assert second.counts != result.counts
    assert second.policy.fingerprint == result.policy.fingerprint


EDITS = [
    (("format",), "reprl-receipt", "recipe format must be 'reprl-recipe', got 'reprl-receipt'"),
    (("version",), 2, "recipe version must be 1 for this release of reprl, got 2 \\(a newer release wrote it\\)"),
    (("version",), 0, "recipe version must be 1 for this release of reprl, got 0$"),
    (("version",), True, "recipe version must be 1 .* got True"),
    (("version",), "1", "recipe version must be 1 .* got '1'"),
    (("stream_version",), 2, "recipe stream_version must be 1 for this release of reprl, got 2$"),
    (("stream_version",), 1.0, "recipe stream_version must be 1 .* got 1.0"),
    (("shared_seed",), "7", "recipe shared_seed must be a whole number .* got '7'"),
    (("shared_seed",), -1, "recipe shared_seed .* got -1"),
    (("shared_seed",), 2**64, "recipe shared_seed .* got 18446744073709551616"),
    (("shared_seed",), 7.5, "recipe shared_seed .* got 7.5"),
    (("package_version",), 1, "recipe package_version must be a printable text .* got 1"),
    (("settings", "epsilon"), "0.3", "recipe settings.epsilon must lie in \\(0, inf\\), got '0.3'"),
    (("settings", "epsilon"), None, "recipe settings.epsilon must be a number where there is no quality, got None"),
    (("settings", "quality"), 0.9, "recipe settings.quality must be left out unless rule='soft', got 0.9"),
    (("settings", "baseline"), [[0, 0, 0, 0]], "recipe settings.baseline must be left out unless rule='soft'"),
    (("settings", "epsilon"), 4, "recipe settings.epsilon must lie in \\(0, 3\\].* got 4"),
    (("settings", "rho"), 0, "recipe settings.rho must lie in \\(0, 1\\), got 0"),
    (("settings", "coupling"), "best", "recipe settings.coupling must be one of joint, product; got 'best'"),
    (("settings", "boosted"), 1, "recipe settings.boosted must be True or False, got 1"),
    (("settings", "samples"), 1.5, "recipe settings.samples must be a whole number .* got 1.5"),
    (("settings", "preference"), "shared", "recipe settings.preference must be left out unless rule='soft'"),
    (("settings", "rule"), "best", "recipe settings.rule must be one of soft, paper; got 'best'"),
    (("settings", "extra"), 1, "recipe settings must have only the fields .* got 'extra'"),
    (("settings",), [], "recipe settings must be an object .* got \\[\\]"),
    (("candidate",), None, "recipe must have only the fields .* got 'candidate'"),
    (("extra",), 1, "recipe must have only the fields .* got 'extra'"),
    (("environment", "id"), 3, "recipe environment.id must be a printable text .* got 3"),
    (("environment", "options"), [], "recipe environment.options must be an object, got \\[\\]"),
    (("environment", "options", "horizon"), 3, "recipe environment.options must not hold .* got 'horizon'"),
    (("environment", "n_states"), 0, "recipe environment.n_states must be a whole number .* got 0"),
    (("environment", "digest"), "abc", "recipe environment.digest must be 64 hexadecimal digits, got 'abc'"),
]


def edited(document: dict[str, Any], path: tuple[str, ...], value: object) -> str:
    changed = copy.deepcopy(document)
    place: Any = changed
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return json.dumps(changed)


@pytest.mark.parametrize(("path", "value", "message"), EDITS)
def test_an_edited_recipe_is_refused_naming_the_field(result, path, value, message):
    with pytest.raises(ReprlError, match=f"^{message}"):
        Recipe.from_json(edited(result.recipe.to_dict(), path, value))


SOFT_EDITS = [
    (("settings", "preference"), [0, 1], "recipe settings.preference must name every action once"),
    (("settings", "preference"), [0, 1, 1], "recipe settings.preference must name every action once"),
    (("settings", "preference"), [0, 1, True], "recipe settings.preference must be a whole number"),
    (("settings", "preference"), [0, 1, 3], "recipe settings.preference must be a whole number from 0 to 2, got 3"),
    (("settings", "preference"), ["a0", "a1", "a2"], "recipe settings.preference must name actions among numbers"),
    (("settings", "preference"), {}, "recipe settings.preference must be null, 'shared' or a list"),
    (("settings", "preference"), "best", "recipe settings.preference must be None, 'shared' or a list"),
    (("settings", "samples"), 4, "recipe settings.samples must be left out unless rule='paper', got 4"),
    (("settings", "boosted"), 0, "recipe settings.boosted must be True or False, got 0"),
    (("settings", "boosted"), True, "recipe settings.boosted must be left out unless rule='paper', got True"),
    (("settings", "quality"), 1.0, "recipe settings.quality must lie in \\(0, 1\\), got 1"),
    (("settings", "quality"), "0.9", "recipe settings.quality must lie in \\(0, 1\\), got '0.9'"),
    (("settings", "quality"), None, "recipe settings.epsilon must be a number where there is no quality, got None"),
    (("settings", "epsilon"), 0.3, "recipe settings.quality must be left out where epsilon is given"),
    (("settings", "baseline"), [0, 1], "recipe settings.baseline must have shape .* = \\(3, 4\\) or .*\\(1, 2\\)"),
    (("settings", "baseline"), [[0, 1, 2, 3]], "recipe settings.baseline .* must be an action from 0 to 2, got 3"),
    (("settings", "baseline"), {"a": 1}, "recipe settings.baseline: must be a policy, an .* got {'a': 1}"),
    (("settings", "baseline"), [[0, 1, 2, 0.5]], "recipe settings.baseline: actions.* must be an action index"),
]


@pytest.mark.parametrize(("path", "value", "message"), SOFT_EDITS)
def test_an_edited_recipe_of_the_default_rule_is_refused(soft_run, path, value, message):
    with pytest.raises(ReprlError, match=f"^{message}"):
        Recipe.from_json(edited(soft_run.recipe.to_dict(), path, value))


def test_a_planned_recipe_is_that_of_the_run(soft_run):
    recipe = soft_run.recipe
    planned = Recipe.plan(soft_run.environment, Settings(preference=("a2", "a0", "a1")), 11)
    assert planned.settings.preference == (2, 0, 1)
    assert planned.digest == recipe.digest
    assert replace(recipe, settings=replace(recipe.settings, preference=None)).digest != recipe.digest


@pytest.mark.parametrize("seed", [0, 7])
def test_a_recipe_says_its_shared_seed_alone(soft_run, seed):
    with pytest.raises(ReprlError, match=f"^shared_seed must be left out for a recipe, which says it, got {seed}$"):
        reprl.learn(soft_run.recipe, shared_seed=seed)


def test_a_missing_field_is_refused_by_name(result):
    whole = result.recipe.to_dict()
    for part, places in (("recipe", whole), ("recipe settings", whole["settings"])):
        for name in list(places):
            if name in ("format", "version"):
                continue
            value = places.pop(name)
            with pytest.raises(ReprlError, match=f"^{part} must have the field '{name}'"):
                Recipe.from_json(json.dumps(whole))
            places[name] = value


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "NaN", b"\xff\xfe{}", b"\x00", "[" * 100_000, '"' + "x" * 1000 + '"', "1" * 5000],
)
def test_what_is_no_recipe_is_refused(text):
    with pytest.raises(ReprlError, match=r"recipe|JSON"):
        Recipe.from_json(text)


def test_numbers_that_are_not_finite_and_fields_given_twice_are_refused(result):
    text = result.recipe.to_json()
    with pytest.raises(ReprlError, match="numbers must be finite, got NaN"):
        Recipe.from_json(text.replace('"epsilon": 0.3', '"epsilon": NaN'))
    with pytest.raises(ReprlError, match=r"^recipe numbers must be finite, got '1e999'$"):
        Recipe.from_json(text.replace('"epsilon": 0.3', '"epsilon": 1e999'))
    with pytest.raises(ReprlError, match="given once, got 'rho' twice"):
        Recipe.from_json(text.replace('"rho": 0.1', '"rho": 0.1, "rho": 0.2'))


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "recipe.json"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    for kind in (Recipe, Receipt):
        with pytest.raises(ReprlError, match=r"a file of at most .* bytes is expected, got 1099511627776"):
            kind.load(path)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["auto", "joint", "episodic", "0.3", "gridworld-v0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def places(document, path=()):
    yield path
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for name, value in items:
        yield from places(value, (*path, name))


def mutate(document, data):
    changed = copy.deepcopy(document)
    path = data.draw(st.sampled_from(list(places(document))))
    if not path:
        return data.draw(JSON)
    place = changed
    for name in path[:-1]:
        place = place[name]
    if data.draw(st.booleans()):
        place[path[-1]] = data.draw(JSON)
    elif isinstance(place, dict) and data.draw(st.booleans()):
        place[data.draw(st.text(max_size=5))] = data.draw(JSON)
    else:
        del place[path[-1]]
    return changed


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_change_of_a_recipe_is_refused_or_means_what_it_says(result, soft_run, data):
    result = data.draw(st.sampled_from([result, soft_run]))
    changed = mutate(result.recipe.to_dict(), data)
    try:
        recipe = Recipe.from_json(json.dumps(changed))
    except ReprlError:
        return
    read = recipe.to_dict()
    assert read == changed  # up to 1 for 1.0 in the settings
    assert Recipe.from_json(recipe.to_json()) == recipe
    before, after = ({**x, "package_version": ""} for x in (result.recipe.to_dict(), read))
    assert (recipe.digest == result.recipe.digest) == (before == after)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_change_of_a_receipt_but_its_timings_is_refused(result, undecided, data):
    result = data.draw(st.sampled_from([result, undecided]))
    document = result.receipt.to_dict()
    changed = mutate(document, data)
    try:
        receipt = Receipt.from_json(json.dumps(changed))
    except ReprlError:
        return
    assert receipt == result.receipt
    assert {**changed, "timings": None} == {**document, "timings": None}


def test_bytes_flipped_anywhere_never_crash_a_reader(result):
    generator = np.random.default_rng(5)
    for artifact in (result.recipe, result.receipt):
        data = bytearray(artifact.to_json().encode())
        for _ in range(300):
            where, what = int(generator.integers(len(data))), int(generator.integers(256))
            kept, data[where] = data[where], what
            with contextlib.suppress(ReprlError):
                type(artifact).from_json(bytes(data))
            data[where] = kept


# Environments


def test_an_environment_is_rebuilt_and_checked(result):
    recipe = result.recipe
    assert recipe.make().digest == recipe.environment.digest
    for name, value in (("n_states", 5), ("n_actions", 5), ("digest", "0" * 64)):
        wrong = replace(recipe, environment=recipe.environment._replace(**{name: value}))
        message = f"^gridworld-v0 built here must be the recipe's, with environment.{name} {str(value)[:12]}, got "
        with pytest.raises(ReprlError, match=message):
            wrong.learn()


@pytest.mark.parametrize(
    ("id", "options", "message"),
    [
        ("gridworld-v9", {}, "recipe environment: environment must be one of .* got 'gridworld-v9'"),
        ("gridworld-v0", {"colour": 1}, "recipe environment: option of gridworld-v0 must be one of .* got 'colour'"),
        ("gridworld-v0", {"size": "big"}, "recipe environment: size must be a whole number .* got 'big'"),
        ("gym:FrozenLake-v1", {"desc": [[]]}, "recipe environment: .*"),
        ("gym:FrozenLake-v1", {"map_name": {}}, "recipe environment: .*"),
        ("gym:Nothing-v0", {}, "recipe environment: gymnasium must be able to make .*"),
    ],
)
def test_an_environment_that_cannot_be_built_is_refused(result, id, options, message):
    recipe = replace(result.recipe, environment=result.environment._replace(id=id, options=options))
    with pytest.raises(ReprlError, match=f"^{message}"):
        recipe.make()


def test_an_environment_built_by_hand_must_be_passed_and_be_the_same():
    law = np.full((2, 2, 2), 0.5)
    mdp = reprl.TabularMDP(law, [[0.1, 0.9], [0.5, 0.2]], horizon=2)
    result = reprl.learn(mdp, shared_seed=1, data_seed=1, **OPTIONS)
    recipe = Recipe.from_json(result.recipe.to_json())
    assert recipe.environment.id is None
    with pytest.raises(ReprlError, match=r"recipe environment.id must name an environment, got null"):
        recipe.learn()
    assert recipe.learn(env=mdp, data_seed=1).receipt == result.receipt
    other = reprl.TabularMDP(law, [[0.1, 0.9], [0.5, 0.3]], horizon=2)
    with pytest.raises(ReprlError) as refusal:
        recipe.learn(env=other)
    recorded, actual = mdp.digest[:12], other.digest[:12]
    wanted = f"the environment given must be the recipe's, with environment.digest {recorded}, got {actual}"
    assert str(refusal.value) == wanted


def test_options_without_a_json_form_make_an_environment_one_built_by_hand(result):
    environment = result.environment
    for value in (print, {1: 2}, math.nan, {"a": {1, 2}}):
        recipe = Recipe.plan(environment._replace(options={"x": value}), result.settings, 7)
        assert (recipe.environment.id, recipe.environment.options) == (None, {})
    portable = {"desc": ("SF", "FG"), "n": np.int64(3), "p": np.float32(0.5), "grid": np.zeros((1, 2))}
    recipe = Recipe.plan(environment._replace(options=portable), result.settings, 7)
    assert recipe.environment.options == {"desc": ["SF", "FG"], "n": 3, "p": 0.5, "grid": [[0.0, 0.0]]}


def test_a_black_box_is_known_by_its_spaces():
    model = reprl.make("gym:Blackjack-v1", horizon=3, reward_range=(-1.0, 1.0), natural=True)
    recipe = Recipe.from_json(Recipe.plan(describe(model), Settings(access="episodic"), 1).to_json())
    assert recipe.environment.options == {"reward_range": [-1.0, 1.0], "natural": True}
    assert isinstance(recipe.make(), reprl.GymnasiumModel)
    wider = recipe.environment._replace(options={"reward_range": [-2.0, 1.0], "natural": True})
    with pytest.raises(ReprlError, match=r"must be the recipe's, with environment.reward_range"):
        replace(recipe, environment=wider).make()


# Receipts


def test_a_receipt_survives_its_file(result, episodic, soft_run, undecided, tmp_path):
    for receipt in (result.receipt, episodic.receipt, soft_run.receipt, undecided.receipt):
        loaded = Receipt.load(receipt.save(tmp_path / "receipt.json"))
        assert loaded == receipt
        assert loaded.to_json() == receipt.to_json()


def test_a_receipt_says_what_a_run_produced(episodic):
    document = json.loads(episodic.receipt.to_json())
    assert document["recipe"] == episodic.recipe.digest
    assert document["fingerprint"] == episodic.policy.fingerprint
    assert (document["samples"], document["episodes"]) == (episodic.samples, episodic.episodes)
    promised = [document["guarantee"][name]["status"] for name in ("quality", "same")]
    assert promised == ["none", "none"], "a number of runs that was set by hand promises nothing"
    assert document["tiers"] == {"count": episodic.tiers.count, "level": episodic.tiers.level.tolist()}
    assert episodic.explored is not None
    assert document["fractional"] == episodic.explored.fractional.tolist()
    assert document["ignored"] == episodic.explored.ignored.astype(int).tolist()
    assert document["visits"] == episodic.counts.visits.sum(axis=2).tolist()
    assert episodic.induction is not None
    assert document["values"] == episodic.induction.values.tolist()
    assert document["rule"] == "paper"
    assert (document["choice"], document["verdict"], document["spread"]) == (None, None, None)
    assert document["timings"]["seconds"] == episodic.seconds > 0


def test_a_receipt_says_what_was_chosen_and_rehearsed(soft_run):
    document = json.loads(soft_run.receipt.to_json())
    assert document["rule"] == "soft"
    assert document["choice"] == soft_run.choice._asdict()
    verdict = soft_run.verdict._asdict()
    apart = verdict.pop("apart")
    undecided = document["verdict"].pop("apart")
    assert document["verdict"] == verdict
    assert undecided == [[h, s, apart[h, s]] for h, s in soft_run.undecided]
    for name in ("quality", "same"):
        promise = getattr(soft_run.guarantee, name)
        assert promise.status != "none"
        assert document["guarantee"][name] == asdict(promise)
    assert document["guarantee"]["share"] == 0.9
    assert document["spread"] == soft_run.spread
    assert (document["fractional"], document["ignored"]) == (None, None)


def test_a_run_that_is_not_sure_states_no_figure(undecided):
    assert undecided.guarantee.status == "none"
    document = undecided.receipt.to_dict()
    for name in ("quality", "same"):
        promised = document["guarantee"][name]
        assert (promised["status"], promised["risk"]) == ("none", None)
        assert promised["source"]
    read = Receipt.from_json(undecided.receipt.to_json())
    assert (read.guarantee.rho, read.guarantee.delta) == (1.0, 1.0)
    assert read.guarantee == undecided.guarantee
    assert read.verdict is not None
    np.testing.assert_array_equal(read.verdict.apart, undecided.verdict.apart)
    np.testing.assert_array_equal(read.undecided, undecided.verdict.apart)
    shares = [share for _, _, share in document["verdict"]["apart"]]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] > 0


def test_a_run_saves_itself(soft_run, undecided, result, tmp_path):
    for run in (soft_run, undecided, result):
        folder = run.save(tmp_path / run.policy.short_fingerprint)
        held = reprl.load_run(folder)
        assert (held.recipe, held.receipt, held.policy) == (run.recipe, run.receipt, run.policy)
    with pytest.raises(ReprlError, match="must be empty or hold this recipe"):
        result.save(folder.parent / soft_run.policy.short_fingerprint)
    result.save(folder.parent / soft_run.policy.short_fingerprint, force=True)


def test_a_receipt_carries_the_names_of_the_environment(result, tmp_path):
    assert Receipt.of(result).labels.name == "gridworld-v0"
    labels = reprl.Labels("ice", "slippery", ("a", "b", "c", ""), ("↑", "→", "↓", "←"), (2, 2))
    named = replace(
        result,
        policy=reprl.Policy(result.policy.actions),  # a bare table has no names to contradict the receipt's
        record=result.record._replace(environment=result.environment._replace(labels=labels)),
    )
    receipt = Receipt.of(named)
    assert receipt.digest != result.receipt.digest
    assert receipt.to_dict()["labels"] == {
        "name": "ice",
        "description": "slippery",
        "states": ["a", "b", "c", ""],
        "actions": ["↑", "→", "↓", "←"],
        "grid": [2, 2],
    }
    with open_folder(tmp_path, result.recipe) as folder:
        folder.write(named)
    assert load_run(tmp_path).receipt == receipt
    assert load_run(tmp_path).receipt.labels == labels


def test_whatever_the_names_are_a_receipt_can_be_read_again(result):
    odd = reprl.Labels("x" * 5000, "\x1b[31m\n", (1, "\ud800", None, "ü"), ("too", "few"), (np.int64(2), 2))  # type: ignore[arg-type]
    mdp = reprl.make("gridworld-v0", horizon=3, size=2, slip=0.1)
    mdp.labels = odd
    receipt = Receipt.from_json(
        Receipt.of(replace(result, record=result.record._replace(environment=describe(mdp)))).to_json()
    )
    assert receipt.labels == reprl.Labels("x" * 1000, " [31m ", ("1", " ", "None", "ü"), (), (2, 2))


def test_recipe_and_data_seed_fix_the_receipt_but_for_its_timings(result):
    again = run()
    assert again.receipt == result.receipt
    assert again.receipt.digest == result.receipt.digest
    assert run(data_seed=3).receipt != result.receipt


def test_the_data_seed_is_committed_to_and_never_shown(result):
    seed = 918273645564738291
    receipt = run(data_seed=seed).receipt
    assert str(seed) not in receipt.to_json()
    assert receipt.data_commitment == commit_data_seed(result.recipe.digest, seed)
    assert len({commit_data_seed(recipe, s) for recipe in ("a", "b") for s in range(50)}) == 100


def test_visits_beyond_64_bits_stay_exact():
    mdp = reprl.make("gridworld-v0", horizon=1, size=2)
    result = reprl.learn(mdp, shared_seed=1, data_seed=1, rule="paper", epsilon=6.5e-5)
    assert result.constants is not None
    assert 4 * result.constants.calls > 2**63
    receipt = Receipt.from_json(result.receipt.to_json())
    assert receipt.visits.tolist() == [[4 * result.constants.calls] * 4]


RECEIPT_EDITS = [
    (("samples",), -1, "receipt samples must be a whole number"),
    (("samples",), 12, "receipt digest must be"),
    (("fingerprint",), "x", "receipt fingerprint must be 64 hexadecimal digits, got 'x'"),
    (("tiers", "count"), 0, "receipt tiers.count must be"),
    (("tiers", "level"), [[1, 2], [1]], "receipt tiers.level"),
    (("visits",), [[1]], "receipt visits must be a list of 3 items, got 1 items"),
    (("values",), "x", "receipt values must be a list of 4 items, got 'x'"),
    (("values", 0, 0), None, r"receipt values\[0\]\[0\] must be a finite number, got None"),
    (("ignored",), [], "receipt ignored must be null exactly where fractional is"),
    (("labels",), None, "receipt labels must be an object"),
    (("labels", "name"), "other", "receipt digest must be"),
    (("labels", "name"), "\x1b[0m", "receipt labels.name must be a printable text"),
    (("labels", "states"), ["a"], "receipt labels.states must be 4 texts or none, got 1"),
    (("labels", "states"), "abcd", "receipt labels.states must be a list of texts, got 'abcd'"),
    (("labels", "actions"), [1], r"receipt labels.actions\[0\] must be a printable text .* got 1"),
    (("labels", "grid"), [2], r"receipt labels.grid must be \[rows, columns\] or null, got \[2\]"),
    (("labels", "grid"), [2, 0], "receipt labels.grid must be a whole number of at least 1, got 0"),
    (("stream_version",), 2, "receipt stream_version must be 1 for this release of reprl, got 2"),
    (("choice",), {}, "receipt choice must be null exactly for the rule 'paper'"),
    (("rule",), "soft", "receipt choice must be null exactly for the rule 'paper', got None"),
    (("verdict",), {}, "receipt verdict must be null exactly for the rule 'paper'"),
    (("rule",), "canonical", "receipt rule must be one of soft, paper; got 'canonical'"),
    (("undecided",), [[0, 0, 0.5]], "receipt must have only the fields .* got 'undecided'"),
    (("timings", "seconds"), -1, "receipt timings.seconds must lie in"),
    (("digest",), "0" * 64, "receipt digest must be that of its content, got another"),
]


UNDECIDED_EDITS = [
    (("guarantee", "same", "risk"), 0.1, "receipt guarantee.same.risk must be null exactly where .* got 0.1"),
    (("guarantee", "same"), None, "receipt guarantee.same must be an object"),
    (("guarantee", "share"), 2.0, "receipt guarantee.share must"),
    (("guarantee", "assumed"), "all is well", "receipt digest must be"),
    (("choice", "level"), 3, "receipt choice.level must be a whole number from 0 to 2, got 3"),
    (("choice", "attempt"), -2, "receipt choice.attempt must be a whole number"),
    (("choice", "allowed"), -0.1, "receipt choice.allowed must"),
    (("choice", "value"), None, "receipt choice.value must"),
    (("choice", "value"), 0.5, "receipt digest must be"),
    (("choice",), None, "receipt choice must be null exactly for the rule 'paper', got None"),
    (("verdict",), None, "receipt verdict must be null exactly for the rule 'paper', got None"),
    (("verdict", "teams"), 0, "receipt verdict must have at most 0 teams, got "),
    (("verdict", "agree"), 2**15, "receipt verdict must have at most .* teams, got 32768"),
    (("verdict", "crossed"), 0, "receipt verdict.crossed must be true or false, got 0"),
    (("verdict", "same"), True, "receipt digest must be"),
    (("verdict", "apart", 0), [0, 0], r"receipt verdict.apart\[0\] must be \[step, state, share\]"),
    (("verdict", "apart", 0), [0, 99, 0.5], r"receipt verdict.apart\[0\] must be a cell of the"),
    (("verdict", "apart", 0), [0, 0, 0], r"receipt verdict.apart\[0\] must be .* a share in"),
    (("verdict", "apart"), [], "receipt digest must be"),
    (("spread",), None, "receipt spread must be null exactly for the rule 'paper', got None"),
]


@pytest.mark.parametrize(("path", "value", "message"), UNDECIDED_EDITS)
def test_an_edited_receipt_of_the_default_rule_is_refused(undecided, path, value, message):
    with pytest.raises(ReprlError, match=f"^{message}"):
        Receipt.from_json(edited(undecided.receipt.to_dict(), path, value))


PROMISE_EDITS = [
    (
        ("guarantee", "quality", "status"),
        "verified",
        "receipt guarantee.quality.status must be one of proven, .*, none",
    ),
    (("guarantee", "same", "status"), "proven", "receipt digest must be"),
    (("guarantee", "same", "status"), "none", "receipt guarantee.same.risk must be null exactly where"),
    (("guarantee", "same", "risk"), None, "receipt guarantee.same.risk must be null exactly where"),
    (("guarantee", "same", "risk"), 0.01, "receipt digest must be"),
    (("guarantee", "quality", "risk"), 1.5, "receipt guarantee.quality.risk must"),
]


@pytest.mark.parametrize(("path", "value", "message"), PROMISE_EDITS)
def test_an_edited_promise_is_refused(soft_run, path, value, message):
    with pytest.raises(ReprlError, match=f"^{message}"):
        Receipt.from_json(edited(soft_run.receipt.to_dict(), path, value))


@pytest.mark.parametrize(("path", "value", "message"), RECEIPT_EDITS)
def test_an_edited_receipt_is_refused(result, path, value, message):
    with pytest.raises(ReprlError, match=f"^{message}"):
        Receipt.from_json(edited(result.receipt.to_dict(), path, value))


# Folders


def test_a_folder_holds_one_run(result, tmp_path):
    put(tmp_path / "deep" / "run", result)
    held = load_run(tmp_path / "deep" / "run")
    assert (held.recipe, held.receipt, held.policy) == (result.recipe, result.receipt, result.policy)
    assert sorted(path.name for path in (tmp_path / "deep" / "run").iterdir()) == [
        "policy.json",
        "receipt.json",
        "recipe.json",
    ]


def test_a_folder_with_another_recipe_is_overwritten_only_by_force(result, other, tmp_path):
    put(tmp_path, result)
    with pytest.raises(ReprlError, match=r"must be empty or hold this recipe .*--force"):
        put(tmp_path, other)
    assert load_run(tmp_path).receipt == result.receipt
    put(tmp_path, run(data_seed=5))
    assert load_run(tmp_path).receipt != result.receipt
    put(tmp_path, other, force=True)
    assert load_run(tmp_path).receipt == other.receipt


def test_a_folder_with_a_damaged_recipe_is_not_overwritten(result, tmp_path):
    (tmp_path / "recipe.json").write_text("{}")
    with pytest.raises(ReprlError, match=r"got one that is refused"):
        put(tmp_path, result)
    put(tmp_path, result, force=True)
    assert load_run(tmp_path).receipt == result.receipt


def test_files_of_two_runs_are_no_run(result, other, tmp_path):
    put(tmp_path, result)
    result_policy = (tmp_path / "policy.json").read_text()
    Policy(1 - other.policy.actions % 2).save(tmp_path / "policy.json")
    with pytest.raises(ReprlError, match=r"files of one run, got a mixture: receipt fingerprint must be its policy's"):
        load_run(tmp_path)
    (tmp_path / "policy.json").write_text(result_policy)
    other.recipe.save(tmp_path / "recipe.json")
    with pytest.raises(ReprlError, match=r"got a mixture: receipt must belong to its recipe"):
        load_run(tmp_path)
    (tmp_path / "receipt.json").unlink()
    with pytest.raises(ReprlError, match=r"receipt.json: no such file"):
        load_run(tmp_path)


def test_a_folder_made_in_vain_is_removed(result, tmp_path):
    with pytest.raises(KeyError), open_folder(tmp_path / "new", result.recipe):
        raise KeyError
    assert not (tmp_path / "new").exists()


def test_two_writers_cannot_share_a_folder(result, tmp_path):
    busy = pytest.raises(ReprlError, match="must be free, got a folder that another run is about to write to")
    with open_folder(tmp_path, result.recipe), busy:
        put(tmp_path, result)
    put(tmp_path, result)
    assert load_run(tmp_path).receipt == result.receipt


CRASH = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
from tests.test_artifacts import put, run
from reprl.artifacts.folder import load_run
from reprl.storage.documents import canonical
from reprl.errors import ReprlError

folder = Path(sys.argv[1])
runs = [run(), run(data_seed=2, shared_seed=8)]
known = {x.receipt.digest for x in runs}

def child(work):
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    finally:
        os._exit(0)

def die_at(n):
    # The n-th call that touches the disk is the last one of this process.
    seen = [0]
    def patched(real):
        def call(*args, **kwargs):
            seen[0] += 1
            if seen[0] == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)
        return call
    for name in ("mkdir", "open", "write", "fsync", "rename", "replace", "rmdir", "unlink"):
        setattr(os, name, patched(getattr(os, name)))
    put(folder, runs[1], force=True)

put(folder, runs[0], force=True)
points, new = 0, 0
for n in range(1, 200):
    put(folder, runs[0], force=True)
    status = os.waitpid(child(lambda: die_at(n)), 0)[1]
    new += load_run(folder).receipt == runs[1].receipt
    assert load_run(folder).receipt.digest in known
    if not os.WIFSIGNALED(status):
        break
    points += 1

def write_for_ever(told):
    for i in range(10**9):
        put(folder, runs[i % 2], force=True)
        os.write(told, b"x")

rng, survived = random.Random(3), set()
for _ in range(30):
    heard, told = os.pipe()
    pid = child(lambda: write_for_ever(told))
    os.close(told)
    for _ in range(rng.randint(1, 4)):
        os.read(heard, 1)
    time.sleep(rng.uniform(0.0, 0.01))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(heard)
    survived.add(load_run(folder).receipt.digest)

def fight(which):
    for _ in range(15):
        try:
            put(folder, runs[which], force=True)
        except ReprlError as error:
            assert "must be free" in str(error), error

pids, reads = [child(lambda w=w: fight(w)) for w in (0, 1)], 0
while pids:
    assert load_run(folder).receipt.digest in known
    reads += 1
    pids = [pid for pid in pids if os.waitpid(pid, os.WNOHANG) == (0, 0)]
print(points, new, len(survived), reads, sorted(x.name for x in folder.iterdir() if x.suffix == ".json"))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_writer_leaves_the_old_run_or_the_new_one(tmp_path):
    """Killed at every call that touches the disk, then at random moments, then two writers and a reader at once."""
    command = [sys.executable, "-c", CRASH, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    points, new, survived, reads, names = done.stdout.split(maxsplit=4)
    assert int(points) >= 10
    assert 2 <= int(new) < int(points)  # a commit that was not finished counts, and so does what came after it
    assert int(survived) == 2
    assert int(reads) > 1
    assert names.strip() == "['policy.json', 'receipt.json', 'recipe.json']"


FULL = """
import resource, sys
from pathlib import Path
from tests.test_artifacts import put, run
from reprl.artifacts.folder import load_run
from reprl.storage.documents import canonical
from reprl.errors import ReprlError

folder, old, new = Path(sys.argv[1]), run(), run(data_seed=2)
put(folder, old)
for limit in (0, 100, 900):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for save in (lambda: put(folder, new), lambda: new.receipt.save(folder / "receipt.json")):
        try:
            save()
            print("written")
        except ReprlError as error:
            print(error)
        assert load_run(folder).receipt == old.receipt
        assert len(list(folder.iterdir())) == 3, list(folder.iterdir())
"""


def test_a_disk_that_fills_up_leaves_the_old_run(tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    for line in lines:
        assert line.startswith("cannot write")
        assert line.endswith("File too large")


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not permitted")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_leaves_the_old_run(small_disk, result):
    result.policy.save(small_disk / "policy.json")
    with open(small_disk / "ballast", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 512):
            pass
    with pytest.raises(ReprlError, match=f"cannot write to {small_disk}: No space left on device"):
        put(small_disk, result)
    assert Policy.load(small_disk / "policy.json") == result.policy


# Comparisons


def test_a_comparison_names_the_first_cells_and_the_values(result):
    mdp = result.recipe.make()
    actions = result.policy.actions.copy()
    actions[1, 2] = (actions[1, 2] + 1) % 4
    actions[2, 0] = (actions[2, 0] + 1) % 4
    other = Policy(actions)
    found = compare_policies(result.policy, other, mdp)
    assert not found.same
    assert (found.different, found.cells) == (2, 12)
    assert [(cell.step, cell.state) for cell in found.first] == [(1, 2), (2, 0)]
    assert found.to_dict()["first"][0]["state_name"] == "1,0"
    assert found.to_dict()["first"][0]["action_names"] == [
        "↑→↓←"[result.policy.actions[1, 2]],
        "↑→↓←"[actions[1, 2]],
    ]
    assert isinstance(mdp, reprl.TabularMDP)
    assert found.values == (mdp.evaluate(result.policy), mdp.evaluate(other))


def test_names_serve_where_the_environment_is_not_known(result):
    labels = reprl.Labels(states=("a", "b", "c", "d"), actions=("up", "right", "down", "left"))
    other = Policy((result.policy.actions + 1) % 4)
    found = compare_policies(result.policy, other, labels=labels)
    assert found.to_dict()["first"][1]["state_name"] == "b"
    assert set(found.to_dict()["first"][0]["action_names"]) <= set(labels.actions)
    assert compare_policies(result.policy, other).to_dict()["first"][1]["state_name"] == "1"


def test_policies_of_other_shapes_and_bare_fingerprints_can_be_compared(result):
    small = Policy([[0, 0]])
    found = compare_policies(small, result.policy, result.recipe.make())
    assert (found.same, found.different, found.values) == (False, None, None)
    assert found.shapes == ((1, 2), (3, 4))
    assert compare_policies(result.policy.fingerprint, result.policy).same
    assert not compare_policies(small.fingerprint, result.policy).same


def test_evidence_is_read_from_folders_policies_and_receipts(result, tmp_path):
    put(tmp_path / "run", result)
    for name in ("", "policy.json", "receipt.json"):
        found = load_evidence(tmp_path / "run" / name)
        assert found.fingerprint == result.policy.fingerprint
        assert (found.policy, found.receipt, found.recipe) == (result.policy, result.receipt, result.recipe)
    Policy([[0, 1]]).save(tmp_path / "run" / "policy.json")
    alone = load_evidence(tmp_path / "run" / "receipt.json")
    assert (alone.policy, alone.fingerprint) == (None, result.policy.fingerprint)
    assert load_evidence(tmp_path / "run" / "policy.json").receipt is None
    with pytest.raises(ReprlError, match="must be a policy, a receipt or a run folder, got 'reprl-recipe'"):
        load_evidence(tmp_path / "run" / "recipe.json")


def test_the_canonical_form_does_not_depend_on_order():
    assert canonical({"b": 1, "a": {"d": 0.1, "c": "é"}}) == b'{"a":{"c":"\\u00e9","d":0.1},"b":1}'


def test_verify_takes_results_policies_and_folders(result, other, tmp_path):
    put(tmp_path / "run", result)
    stored = load_run(tmp_path / "run")
    for one in (result, stored, result.policy, tmp_path / "run", str(tmp_path / "run" / "policy.json")):
        assert reprl.verify(one, result).same
        assert reprl.verify(result.receipt, one).same, "what has a fingerprint is known by it"
    found = reprl.verify(tmp_path / "run", replace(result, policy=Policy(1 - result.policy.actions % 2)))
    assert not found.same
    assert found.different
    assert found.first[0].actions == (result.policy.actions[0, 0], 1 - result.policy.actions[0, 0] % 2)
    assert found.values is not None, "the recipe names an environment of reprl's own"
    assert reprl.verify(result.policy, Policy([[0]])).values is None
    for bad in (3, None, np.zeros((2, 2))):
        with pytest.raises(ReprlError, match=r"^b must be a result, a policy, or the path of"):
            reprl.verify(result, bad)


class Rule:
    """A policy that is no table."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint


def test_policies_that_are_no_tables_are_compared_by_their_fingerprints(result):
    assert reprl.verify(Rule("a"), Rule("a")).same
    found = reprl.verify(Rule("a"), result)
    assert (found.same, found.shapes, found.different, found.first, found.values) == (False, None, None, (), None)
    assert found.to_dict()["fingerprints"] == ["a", result.policy.fingerprint]
