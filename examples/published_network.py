"""A published network as the centre of a search: its last layer is changed until the return is certified.

Team one has published a network for CartPole. It balances the pole for a while. Both teams search near its last layer
and end in the same weights. The network is a part of the recipe; what a team has trained for itself alone is data and
must not be a centre.

    python examples/published_network.py            # the small network below; about a minute on one core
    python examples/published_network.py ppo.zip    # a PPO checkpoint of Stable-Baselines3 for CartPole
"""

from __future__ import annotations

import sys

import numpy as np

import reprl


class Acting:
    """A network with hidden layers of tanh units."""

    def __init__(self, hidden, last):
        self.hidden, self.last = hidden, last

    def act(self, observation):
        """Return the action with the largest score."""
        units = np.asarray(observation, dtype=float)
        for layer in self.hidden:
            units = np.tanh(layer @ np.append(units, 1.0))
        return int((self.last @ np.append(units, 1.0)).argmax())


class LastLayer:
    """Networks that share the published hidden layers; the weights that a search proposes are those of the last one."""

    def __init__(self, hidden, last):
        self.hidden, self.shape = hidden, last.shape
        self.size, self.centre = last.size, last.ravel()
        self.scale = np.full(last.size, 0.25)

    def from_vector(self, weights):
        """Return the network with this last layer."""
        return Acting(self.hidden, weights.reshape(self.shape))


def published():
    """Return the network of team one: six hidden units, and a last layer that lets the cart drift away."""
    hidden = np.zeros((6, 5))
    hidden[:4, :4] = np.eye(4)
    hidden[4], hidden[5] = (0.5, 0.9, -0.4, 0.1, 0.2), (-0.8, 0.3, 0.6, -0.9, 0.1)
    last = np.array([0.0, -0.1, 1.0, 0.5, 0.05, -0.05, 0.0])
    return [hidden], np.stack((-last, last))


def from_ppo(path):
    """Return the same of a PPO checkpoint of Stable-Baselines3, whose hidden layers are tanh units by default."""
    from stable_baselines3 import PPO
    from torch.nn import Linear, Tanh

    policy = PPO.load(path, device="cpu").policy
    parts = [*policy.mlp_extractor.policy_net, policy.action_net]
    if not all(isinstance(part, Linear | Tanh) for part in parts):
        raise ValueError(f"the layers must be linear, with tanh units, got {parts}")
    *hidden, last = (
        np.column_stack((part.weight.detach().numpy(), part.bias.detach().numpy())).astype(float)
        for part in parts
        if isinstance(part, Linear)
    )
    return hidden, last


def main():
    """Search near the published network, twice."""
    family = LastLayer(*(from_ppo(sys.argv[1]) if len(sys.argv) > 1 else published()))
    first = reprl.learn("gym:CartPole-v1", target=475, policy=family, shared_seed=7, data_seed=1)
    print(first)
    print(f"the published network earns {first.baseline_value:.1f}, the winner {first.value:.1f}")
    for rung in first.details.ladder:
        print(f"rung {rung.rung}: level {rung.level:.1f}, candidate {rung.candidate}, {rung.samples:,} steps")
    second = first.recipe.learn(policy=family, data_seed=2)
    print("same policy" if second.policy == first.policy else "different policies")


if __name__ == "__main__":
    main()
