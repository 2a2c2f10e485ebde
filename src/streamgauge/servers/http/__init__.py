"""What the faces of all services share: tokens, limits, server-sent events, metrics, errors, serving."""
