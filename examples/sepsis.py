"""ICU-Sepsis, the treatment of sepsis as a benchmark (Choudhary, Gupta, Thomas 2024), as a TabularMDP.

716 states, 25 actions: fluids and vasopressors at five levels each; a patient who survives within the horizon pays 1.
The numbers come with the package: pip install icu-sepsis. Its files are read as they are; its code is never imported.
"""

from importlib import metadata
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import reprl

LEVELS = 5
ENDS = ("death", "survival", "ended")


def icu_sepsis(horizon=20):
    """Steps of four hours; only actions may be taken that the intensive-care records hold often enough."""
    folder = Path(metadata.distribution("icu-sepsis").locate_file("icu_sepsis/envs/assets"))
    with np.load(folder / "dynamics.npz") as stored:
        law, reward, start = (stored[name].astype(float) for name in ("tx_mat", "r_mat", "d_0"))
    lines = (folder / "admissible_actions.txt").read_text("ascii").splitlines()[1:]
    allowed = np.zeros(law.shape[:2], dtype=bool)
    for s, line in enumerate(lines):
        allowed[s, [int(item) for item in line.split()]] = True
    allowed[~allowed.any(axis=1)] = True  # where an episode is over
    shape = (allowed.size, len(law))
    row, following = np.nonzero(np.where(allowed[..., None], law, 0.0).reshape(shape))
    sparse = [csr_matrix((table.reshape(shape)[row, following], (row, following)), shape) for table in (law, reward)]
    states = (*(f"patient {s}" for s in range(len(law) - len(ENDS))), *ENDS)
    actions = tuple(f"fluids {a // LEVELS}, vasopressors {a % LEVELS}" for a in range(LEVELS**2))
    labels = reprl.Labels("ICU-Sepsis", states=states, actions=actions)
    return reprl.TabularMDP(*sparse, start, horizon, "deterministic", labels=labels, allowed=allowed)


if __name__ == "__main__":
    patients = icu_sepsis()
    best = patients.solve().policy
    first = np.broadcast_to(patients.allowed[0].argmax(axis=1), (patients.horizon, patients.n_states))
    print(f"{patients.n_states} states: {patients.evaluate(best):.3f} survive under the best policy,", end=" ")
    print(f"{patients.evaluate(first):.3f} if the first admissible action is always taken")
    print(reprl.learn(patients, access="generative", shared_seed=7, data_seed=1, max_samples=200_000))
