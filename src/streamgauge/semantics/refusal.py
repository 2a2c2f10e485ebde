"""What is refused: errors whose sentence names it and says what to do; not part of the definition itself."""


class RefusedError(ValueError):
    """What the definition or an evaluator does not cover; the sentence names it and says what to do."""


class OutOfOrderError(ValueError):
    """Application time went back although no lateness bound was declared."""
