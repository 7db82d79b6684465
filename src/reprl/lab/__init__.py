"""Lab: baselines that reprl is compared with, lower-bound instances, the planner. No learner imports it."""
