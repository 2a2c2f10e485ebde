"""The HTTP layer that all servers share: events, limits, access, conditions, metrics, descriptions, serving."""
