"""Episodes of a black box: seeded by their numbers, split over processes, tallied by outcome.

Every episode is seeded by its address, so episodes may be split over processes in any way. Memory grows with the number
of different outcomes, not with that of samples. Where a model knows the law of a state (a Gymnasium environment that
has ended stays ended), an episode that comes there is over, and its cells get one free record for each episode.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError
from reprl.execution.pool import WorkerPool
from reprl.mdp.counts import Counts, tally
from reprl.mdp.dynamics import Data
from reprl.randomness import DataStream, fill_words
from reprl.sources.protocol import Episodic, mask_of
from reprl.storage.checkpoints import Content, Kept
from reprl.storage.fields import read_fields, whole, wholes

_CHUNK = 1024
"""Seeds that are drawn at a time."""

Records = Counter[tuple[int, int, float]]
"""How often (cell, next state, reward) was seen, cell = (h·S + s)·A + a."""


Plan = list[list[int | list[float]]]
"""For each step and state, an action, or the running sums of a law of actions."""


def play_batch(
    model: Episodic,
    play: NDArray[np.float64],
    episodes: int,
    stream: DataStream,
    pool: WorkerPool,
    progress: Callable[[int, int], None] | None,
) -> tuple[Data, Data]:
    """Have the worker pool play episodes, or return those that its checkpoint has kept; what each half showed.

    A batch is kept under everything that it is a function of, so that a run with another limit finds those they share.

    Randomness:
        Word k of lane 0 of the stream seeds episode k, and its lowest bit says which half it belongs to; word h of lane
        k + 1 draws its action at step h.
    """
    if pool.checkpoint is None:
        return _play_box(model, play, episodes, stream, pool, progress).halves
    kept = Kept(pool.checkpoint, "", _write_batch, partial(_read_batch, model))
    name = f"{stream.purpose}/{episodes}/{hashlib.sha256(play.tobytes()).hexdigest()[:32]}"
    batch = kept.get(name)
    if batch is None:
        batch = _play_box(model, play, episodes, stream, pool, progress)
        kept.put(name, batch)
    else:
        model.ledger.episodes += batch.episodes
        model.ledger.samples += batch.samples
    return batch.halves


class _Batch(NamedTuple):
    """Episodes of a black box, and what they cost."""

    halves: tuple[Data, Data]
    episodes: int
    samples: int


def _play_box(
    model: Episodic,
    play: NDArray[np.float64],
    episodes: int,
    stream: DataStream,
    pool: WorkerPool,
    progress: Callable[[int, int], None] | None,
) -> _Batch:
    """Have the worker pool play episodes of laws of actions."""
    before = model.ledger.episodes, model.ledger.samples
    shares = [episodes * w // pool.workers for w in range(pool.workers + 1)]
    parts = [(play, stream, range(*edges)) for edges in pairwise(shares)]
    starts = np.zeros((2, model.n_states), dtype=np.int64)
    records: tuple[Records, Records] = (Counter(), Counter())
    for found, begun in pool.work(play_episodes, parts, episodes, progress):
        starts += begun
        for mine, theirs in zip(records, found, strict=True):
            mine.update(theirs)
    shape, halves = (model.horizon, model.n_states, model.n_actions), []
    for mine, begun in zip(records, starts, strict=True):
        mine.update(known_records(model, int(begun.sum())))
        halves.append(Data(as_counts(mine, shape), begun, mask_of(model)))
    spent = model.ledger.episodes - before[0], model.ledger.samples - before[1]
    return _Batch((halves[0], halves[1]), *spent)


def _write_batch(batch: _Batch) -> Content:
    one, two = (half.counts.to_bytes() for half in batch.halves)
    starts = [half.starts.tolist() for half in batch.halves]
    fields = {"starts": starts, "episodes": batch.episodes, "samples": batch.samples, "first": len(one)}
    return Content(fields, one + two)


def _read_batch(model: Episodic, content: Content) -> _Batch:
    table = {"starts": wholes((2, model.n_states)), "episodes": whole(), "samples": whole(), "first": whole()}
    fields = read_fields("task", content.fields, table, joint=" ")
    parts = content.data[: fields["first"]], content.data[fields["first"] :]
    one, two = (
        Data(Counts.from_bytes(part), starts.copy(), mask_of(model))
        for part, starts in zip(parts, fields["starts"], strict=True)
    )
    return _Batch((one, two), fields["episodes"], fields["samples"])


def play_episodes(
    model: Episodic,
    play: NDArray[np.float64],
    stream: DataStream,
    numbers: range,
    after_episode: Callable[[], None] | None,
) -> tuple[tuple[Records, Records], NDArray[np.int64]]:
    """Play some episodes of a batch, one after the other, on one environment.

    Args:
        model: the environment; its ledger is charged.
        play: (H, S, A) laws of actions.
        stream: of the batch.
        numbers: of the episodes; they are seeded by them.
        after_episode: called after every episode.

    Returns:
        What was seen in each half, and (2, S) how many episodes of it began in each state.
    """
    records: tuple[dict[tuple[int, int, float], int], ...] = ({}, {})
    starts = np.zeros((2, model.n_states), dtype=np.int64)
    tally_one = getattr(model, "tally_episode", None) or partial(_tally_episode, model)
    plan = _plan(play)
    words, draws = np.empty(1, dtype=np.uint64), np.empty(model.horizon, dtype=np.uint64)
    for number in numbers:
        fill_words(np.uint64(stream.key), np.uint64(0), np.uint64(number), words)
        fill_words(np.uint64(stream.key), np.uint64(number + 1), np.uint64(0), draws)
        half, units = int(words[0]) & 1, ((draws >> np.uint64(11)) * 2.0**-53).tolist()
        try:
            starts[half, tally_one(plan, int(words[0]) >> 1, units, records[half])] += 1
        except ReprlError as error:
            raise type(error)(f"{error} ({stream.purpose}, episode {number})") from None
        except Exception as error:
            error.add_note(f"while exploring {model}: {stream.purpose}, episode {number}")
            raise
        if after_episode is not None:
            after_episode()
    return (Counter(records[0]), Counter(records[1])), starts


def _plan(play: NDArray[np.float64]) -> Plan:
    """Return laws of actions as episodes read them."""
    certain, running = play.max(axis=2) == 1.0, play.cumsum(axis=2)
    running = np.where(running >= running[:, :, -1:], 1.0, running)  # actions behind the last likely one: never
    return [
        [int(law.argmax()) if one else total.tolist() for law, one, total in zip(*row, strict=True)]
        for row in zip(play, certain, running, strict=True)
    ]


def _tally_episode(
    model: Episodic, plan: Plan, seed: int, units: list[float], records: dict[tuple[int, int, float], int]
) -> int:
    """Play an episode of any model, one step at a time; as ``GymnasiumModel.tally_episode`` does."""
    start = state = model.reset(seed)
    known, n_actions = model.known, model.n_actions
    for h, row in enumerate(plan):
        if state in known:
            break
        law = row[state]
        action = law if isinstance(law, int) else bisect_right(law, units[h])
        to, reward, _ = model.step(action)
        seen = (h * model.n_states + state) * n_actions + action, to, reward
        records[seen] = records.get(seen, 0) + 1
        state = to
    return start


def seeds(key: int, run: int, episodes: range) -> Iterator[int]:
    """The 63-bit seeds of successive episodes of a run, by their numbers."""
    for first in range(episodes.start, episodes.stop, _CHUNK):
        words = np.empty(min(_CHUNK, episodes.stop - first), dtype=np.uint64)
        fill_words(np.uint64(key), np.uint64(run), np.uint64(first), words)
        yield from (words >> np.uint64(1)).tolist()


def known_records(model: Episodic, episodes: int) -> Records:
    """What nobody has to see: every cell of a state whose law is known, once for each episode."""
    records: Records = Counter()
    for state, reward in model.known.items():
        for h in range(model.horizon):
            first = (h * model.n_states + state) * model.n_actions
            records.update({(cell, state, reward): episodes for cell in range(first, first + model.n_actions)})
    return records


def as_counts(records: Mapping[tuple[int, int, float], int], shape: tuple[int, int, int]) -> Counts:
    """Turn tallies into Counts over the outcomes that were seen, in the order of ``tally``."""
    outcomes = sorted(records)
    rows = np.empty((len(outcomes), 5))
    if outcomes:
        cells, rows[:, 3], rows[:, 4] = zip(*outcomes, strict=True)
        rows[:, :3] = np.stack(np.unravel_index(cells, shape), axis=1)
    hits = np.array([records[outcome] for outcome in outcomes], dtype=np.int64)
    return Counts(tally(rows, shape).outcomes, hits)
