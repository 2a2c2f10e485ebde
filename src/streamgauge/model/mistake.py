"""Mistakes: errors whose text a user is shown as it is."""


class MistakeError(Exception):
    """Input that a user can put right: the text is one sentence with what is wrong, where, and what to do.

    The command line prints the sentence and ends with exit code 2; any other error there is a fault of the program.
    """
