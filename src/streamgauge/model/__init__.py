"""The nouns of the field as frozen values: standard library only, printable and comparable."""
