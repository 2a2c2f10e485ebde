"""The legal answers of a report: all answers that some assignment of the choices gives."""
