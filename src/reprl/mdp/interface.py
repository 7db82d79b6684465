"""Interface: how a policy's table meets an environment: what is seen becomes a state, an action what is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from reprl.errors import DocumentError, InputError, check_int, quote
from reprl.mdp.criterion import Criterion
from reprl.mdp.environment import Environment, describe
from reprl.mdp.labels import Labels, label_fields, printable_labels
from reprl.storage.fields import Kind, optional, printable, read_fields, record, write_fields

if TYPE_CHECKING:
    from reprl.mdp.spaces import Codec

_NO_NAMES = Labels()


@dataclass(frozen=True)
class Interface:
    """What a policy needs to act: names, and the spaces of a black box.

    States and actions of an environment whose dynamics are known are their own numbers.
    """

    labels: Labels = _NO_NAMES
    observation: Mapping[str, Any] | None = None
    """The space of observations as a document; None where states are numbers."""
    action: Mapping[str, Any] | None = None
    """The same of actions."""

    @classmethod
    def of(cls, env: Any) -> Interface:
        """Return the interface of an environment: the names of a TabularMDP, and the spaces of a black box."""
        labels = printable_labels(describe(env).labels)
        if not hasattr(env, "observations"):
            return cls(labels)
        from reprl.mdp.spaces import space_document

        return cls(labels, space_document(env.observations.space), space_document(env.actions.space))

    @cached_property
    def _seen(self) -> Codec | None:
        return None if self.observation is None else _codec(self.observation, "observation")

    @cached_property
    def _done(self) -> Codec | None:
        return None if self.action is None else _codec(self.action, "action")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The state that each name names; of states with one name, the first."""
        return {name: s for s, name in reversed([*enumerate(self.labels.states)])}

    def state(self, observation: Any, n_states: int) -> int:
        """Return the state that an observation, a state's name or, where there are no spaces, its number stands for."""
        if isinstance(observation, str):
            if observation not in self._numbers:
                known = ", ".join(self.labels.states[:5]) + (", …" if len(self.labels.states) > 5 else "")
                allowed = f"the name of a state ({known})" if known else "a number: the states have no names"
                raise InputError(f"observation must be {allowed}, got {quote(observation)}")
            return self._numbers[observation]
        if self._seen is not None:
            return self._seen.encode(observation)
        if not isinstance(observation, int) and not hasattr(observation, "__index__"):
            named = " or its name," if self.labels.states else ""
            raise InputError(
                f"observation must be the number of a state, from 0 to {n_states - 1},{named} got {quote(observation)}"
            )
        return check_int("observation", observation, 0, n_states - 1)

    def member(self, action: int) -> Any:
        """Return an action as the environment takes it: a member of its space, or the number itself."""
        return action if self._done is None else self._done.decode(action)

    def world(self, horizon: int, n_states: int, n_actions: int) -> Environment:
        """Return the record that pictures are drawn with."""
        return Environment(None, {}, Criterion(horizon), n_states, n_actions, labels=self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return a part of a JSON document."""
        return write_fields(self, _FIELDS)

    @classmethod
    def read(cls, where: str, document: object, n_states: int) -> Interface:
        """Read what ``to_dict`` wrote, for so many states; where is what it is called in messages."""
        found = cls(**read_fields(where, document, _FIELDS, SimpleNamespace(n_states=n_states)))
        if (found.observation is None) != (found.action is None):
            raise DocumentError(f"{where} must have the spaces of observations and of actions, or neither")
        if found._seen is not None and found._seen.size + 1 != n_states:
            raise DocumentError(
                f"{where}.observation must have {n_states - 1} members, one less than there are states, got "
                f"{found._seen.size}"
            )
        return found


def _check_space(where: str, value: Any, at: object) -> Any:
    from reprl.mdp.spaces import read_space  # Gymnasium, where a policy has its spaces

    read_space(where, value)
    return value


_FIELDS = {
    "labels": record(Labels, label_fields(printable(empty=True), lambda at: at.n_states)),
    "observation": optional(Kind(_check_space)),
    "action": optional(Kind(_check_space)),
}


def _codec(space: Mapping[str, Any], role: str) -> Codec:
    from reprl.mdp.spaces import Codec, read_space

    return Codec(read_space(role, space), role)
