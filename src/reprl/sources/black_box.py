"""Episodes of a black box: seeded by their numbers, split over processes, tallied by outcome.

Every episode is seeded by its address, so episodes may be split over processes in any way. Memory grows with the number
of different outcomes, not with that of samples. Where a model knows the law of a state (a Gymnasium environment that
has ended stays ended), an episode that comes there is over, and its cells get one free record for each episode.
"""

from __future__ import annotations

import hashlib
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


def play_batch(
    model: Episodic,
    actions: NDArray[np.int64],
    episodes: int,
    stream: DataStream,
    pool: WorkerPool,
    progress: Callable[[int, int], None] | None,
) -> Data:
    """Have the worker pool play episodes of one policy, or return those that its checkpoint has kept.

    A batch is kept under everything that it is a function of, so that a run with another limit finds those they share.
    """
    if pool.checkpoint is None:
        return _play_box(model, actions, episodes, stream, pool, progress).data
    kept = Kept(pool.checkpoint, "", _write_batch, partial(_read_batch, model))
    name = f"{stream.purpose}/{episodes}/{hashlib.sha256(actions.tobytes()).hexdigest()[:32]}"
    batch = kept.get(name)
    if batch is None:
        batch = _play_box(model, actions, episodes, stream, pool, progress)
        kept.put(name, batch)
    else:
        model.ledger.episodes += batch.episodes
        model.ledger.samples += batch.samples
    return batch.data


class _Batch(NamedTuple):
    """Episodes of a black box, and what they cost."""

    data: Data
    episodes: int
    samples: int


def _play_box(
    model: Episodic,
    actions: NDArray[np.int64],
    episodes: int,
    stream: DataStream,
    pool: WorkerPool,
    progress: Callable[[int, int], None] | None,
) -> _Batch:
    """Have the worker pool play episodes of one policy."""
    before = model.ledger.episodes, model.ledger.samples
    shares = [episodes * w // pool.workers for w in range(pool.workers + 1)]
    parts = [(actions, stream, range(*edges)) for edges in pairwise(shares)]
    records = known_records(model, episodes)
    starts = np.zeros(model.n_states, dtype=np.int64)
    for found, begun in pool.work(play_episodes, parts, episodes, progress):
        records.update(found)
        starts += begun
    data = Data(as_counts(records, (model.horizon, model.n_states, model.n_actions)), starts, mask_of(model))
    return _Batch(data, model.ledger.episodes - before[0], model.ledger.samples - before[1])


def _write_batch(batch: _Batch) -> Content:
    fields = {"starts": batch.data.starts.tolist(), "episodes": batch.episodes, "samples": batch.samples}
    return Content(fields, batch.data.counts.to_bytes())


def _read_batch(model: Episodic, content: Content) -> _Batch:
    counts = Counts.from_bytes(content.data)
    table = {"starts": wholes((counts.outcomes.n_states,)), "episodes": whole(), "samples": whole()}
    fields = read_fields("task", content.fields, table, joint=" ")
    return _Batch(Data(counts, fields["starts"].copy(), mask_of(model)), fields["episodes"], fields["samples"])


def play_episodes(
    model: Episodic,
    actions: NDArray[np.int64],
    stream: DataStream,
    numbers: range,
    after_episode: Callable[[], None] | None,
) -> tuple[Records, NDArray[np.int64]]:
    """Play some episodes of a batch, one after the other, on one environment.

    Args:
        model: the environment; its ledger is charged.
        actions: (H, S) what is played.
        stream: of the batch.
        numbers: of the episodes; they are seeded by them.
        after_episode: called after every episode.

    Returns:
        What was seen, and (S,) how many episodes began in each state.
    """
    records: dict[tuple[int, int, float], int] = {}
    starts = np.zeros(model.n_states, dtype=np.int64)
    tally_one = getattr(model, "tally_episode", None) or partial(_tally_episode, model)
    plan = actions.tolist()
    for number, seed in zip(numbers, seeds(stream.key, 0, numbers), strict=True):
        try:
            starts[tally_one(plan, seed, records)] += 1
        except ReprlError as error:
            raise type(error)(f"{error} ({stream.purpose}, episode {number})") from None
        except Exception as error:
            error.add_note(f"while exploring {model}: {stream.purpose}, episode {number}")
            raise
        if after_episode is not None:
            after_episode()
    return Counter(records), starts


def _tally_episode(
    model: Episodic, plan: list[list[int]], seed: int, records: dict[tuple[int, int, float], int]
) -> int:
    """Play an episode of any model, one step at a time; as ``GymnasiumModel.tally_episode`` does."""
    start = state = model.reset(seed)
    known, n_actions = model.known, model.n_actions
    for h, row in enumerate(plan):
        if state in known:
            break
        action = row[state]
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
