"""The definition: which windows, what they hold, when they report, what is streamed."""
