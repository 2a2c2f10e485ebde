"""Recordings that are not judged as they should be, with the finding (R4 to R6, R8, R9); to be emptied."""

PENDING: dict[str, tuple[str, ...]] = {
    "numbers: a sum beyond 2^63: 9223372036854775807": (
        "definition",
        "changes",
        "spark",
    ),
    "numbers: a comparison beyond 2^63: a ; b ; c": (
        "definition",
        "changes",
        "spark",
    ),
}
