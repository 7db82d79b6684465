"""The learners: wiring of exploration, decision and guarantee."""
