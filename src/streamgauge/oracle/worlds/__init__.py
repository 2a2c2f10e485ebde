"""The legal answers of a report: every answer that some assignment of the choices gives, and no other."""
