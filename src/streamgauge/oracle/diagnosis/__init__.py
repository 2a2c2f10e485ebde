"""Why answers are wrong: models of engines, tried on what was recorded."""
