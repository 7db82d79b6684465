"""Sources: everything that gives samples: parallel calls, episodes, Gymnasium environments, logs."""
