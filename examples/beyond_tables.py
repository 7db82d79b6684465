"""Two teams, one published seed, continuous observations: the same linear policy, bit by bit, with a certified return.

Takes about a minute on one core.
"""

from __future__ import annotations

import reprl


def main() -> None:
    """Learn twice on independent data, and follow the recipe as a second team would."""
    first = reprl.learn("gym:CartPole-v1", target=475, shared_seed=7)
    print(first)
    print(f"earns {first.value:.1f}, certified above {first.certified_return:.1f}, baseline {first.baseline_value:.1f}")
    for rung in first.details.ladder:
        print(f"rung {rung.rung}: threshold {rung.threshold:.1f}, candidate {rung.candidate}, {rung.samples:,} steps")
    second = first.recipe.learn()  # fresh data
    print(second)
    print("same policy" if second.policy == first.policy else "different policies")


if __name__ == "__main__":
    main()
