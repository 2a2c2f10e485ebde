"""The reports that should have been sent, by the definition or by Spark."""
