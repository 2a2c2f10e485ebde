"""Services, each a core without HTTP and its handlers; ``http`` is the layer that they share."""
