"""Lab: baselines that reprl is compared with, lower-bound instances. No learner imports it."""
