"""What is not judged: a sentence that names it and says what to do."""


class RefusedError(ValueError):
    """What the definition or an evaluator does not cover; the sentence names it and says what to do."""
