"""Documents that reports are made of: real runs, and audits and comparisons put together by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import reprl


def run_documents(mdp: reprl.TabularMDP, **options: Any) -> dict[str, Any]:
    """Learn, and return the three documents of the run."""
    return documents_of(reprl.learn(mdp, shared_seed=7, data_seed=1, **{"access": "generative", **options}))


def documents_of(result: reprl.LearnResult) -> dict[str, Any]:
    policy = json.loads(result.policy.to_json())
    return {"recipe": result.recipe.to_dict(), "receipt": result.receipt.to_dict(), "policy": policy}


def labelled(mdp: reprl.TabularMDP) -> dict[str, Any]:
    assert mdp.origin is not None
    labels = mdp.labels
    return {
        "id": mdp.origin.id,
        "options": dict(mdp.origin.options),
        "horizon": mdp.horizon,
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "labels": {
            "name": labels.name,
            "states": list(labels.states),
            "actions": list(labels.actions),
            "grid": None if labels.grid is None else list(labels.grid),
        },
    }


def audit_document(mdp: reprl.TabularMDP, verdict: str = "rejected") -> dict[str, Any]:
    """An audit of a learner that flips coins where actions tie."""
    generator = np.random.default_rng(3)
    shape = (mdp.horizon, mdp.n_states)
    reach = np.zeros(shape)
    for h, s in np.ndindex(shape):
        cell = np.zeros(shape, dtype=bool)
        cell[h, s] = True
        reach[h, s] = mdp.reachability(cell)
    by_cell = np.where(generator.random(shape) < 0.55, generator.random(shape) ** 2, 0.0)
    rejected = verdict == "rejected"
    k = 23 if rejected else 2
    divergences = [
        {
            "pair": i,
            "stage": ("arms", "partition", "window", "policy")[i % 4 if i < 6 else 0],
            "tier": 1 + i % 2 if i % 4 < 2 else None,
            "step": i % mdp.horizon,
            "state": (5 * i) % mdp.n_states,
            "margin": float(0.03 * generator.random()),
            "actions": [i % 2, 1 + i % 2] if i % 4 == 0 else None,
            "text": "two actions were nearly equally good and the runs saw them in another order",
        }
        for i in range(k)
    ]
    return {
        "format": "reprl-audit",
        "version": 1,
        "environment": labelled(mdp),
        "learner": "q-learning" if rejected else "reprl",
        "access": "generative",
        "options": {"epsilon": 0.3, "rho": 0.1, "delta": 0.1, "samples": 200000, "quality": 0.9},
        "seed": 3,
        "rho": 0.1,
        "level": 0.05,
        "pairs": 50,
        "max_pairs": 50,
        "disagreements": k,
        "disagreement": k / 50,
        "interval": [0.318, 0.607] if rejected else [0.0049, 0.137],
        "verdict": verdict,
        "p_value": 1e-9 if rejected else 0.97,
        "sequential": False,
        "alternative": None,
        "runs_per_key": 2,
        "distinct": [2] * k + [1] * (50 - k),
        "by_cell": by_cell.tolist(),
        "by_cell_weighted": (by_cell * reach).tolist(),
        "value_gap": {"mean": 0.0123, "max": 0.087},
        "suboptimality": {"mean": 0.0213, "max": 0.114},
        "first_divergence": divergences,
        "cells": [
            {
                "step": 2,
                "state": 1,
                "disagreement": 0.38,
                "reachability": 0.8,
                "stake": 0.0,
                "actions": [[1, 0.6], [2, 0.4]],
                "visited": None,
            },
            {
                "step": 1,
                "state": 0,
                "disagreement": 0.21,
                "reachability": 1.0,
                "stake": 0.012,
                "actions": [[2, 1.0]],
                "visited": None,
            },
        ],
        "samples": 200000,
        "policies": {
            "over_runs": 1 + k,
            "over_seeds": 1,
            "most_common": 1.0 - k / 100,
            "reached": np.ones(shape, dtype=int).tolist(),
            "apart": k,
            "monte_carlo": None,
        },
        "earned": None,
        "recipe": None,
    }
