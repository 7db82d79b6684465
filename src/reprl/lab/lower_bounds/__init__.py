"""The lower-bound laboratory (Section 7 and Appendix B of the paper): problems, solvers and reductions, as code."""

import lazy_loader  # type: ignore[import-untyped]

_PLACES = {
    "disagreement": "race_disagreement",
    "hard_mdp": "make_hard_mdp policy_to_signs signs_from_episodes signs_from_learner signs_from_reprl signs_to_policy "
    "value_of_signs",
    "problems": "Algorithm coin_excess cube_instance infinity_excess mean_excess pac_excess sign_excess",
    "reductions": "coins_from_infinity infinity_calls infinity_from_coins infinity_tester round_to_signs "
    "signs_from_infinity signs_from_means signs_from_pac",
    "simulation": "PaddedSource SignExamples SimulatedEpisodes SimulatedParallel episode_vectors",
    "solvers": "mean_solver pac_learner plan_signs sign_solver",
    "sources": "LabelledSource ProductSource coins rademacher",
}
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={place: names.split() for place, names in _PLACES.items()}
)
