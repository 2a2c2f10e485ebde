"""SEP-BM: semantic publish/subscribe measured (Murth, Winkler, Biffl, Kühn and Moser, 2010).

``configuration`` is what is published and what is due, ``adapters/`` the systems under test, a file each; a recording
of one on the other is judged by the common oracle, as a channel is a continuous query over landmark facts.
"""
