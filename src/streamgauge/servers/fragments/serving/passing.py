"""What happens with time: facts that ended are forgotten, feeds come in; both while the server is up."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from streamgauge.servers.fragments.serving.dataset import DataSet
from streamgauge.servers.fragments.serving.feeding import Feeding
from streamgauge.servers.fragments.serving.writers import sweep_beside
from streamgauge.servers.fragments.storing.shelf import DamagedStoreError, FullError
from streamgauge.servers.fragments.style import Label

_LOG = logging.getLogger(__name__)
TICK_S: Final = 0.2
"""How often what ended is looked for."""


@asynccontextmanager
async def passing(
    datasets: Sequence[DataSet], feedings: Sequence[Feeding] = (), history: int | None = None
) -> AsyncIterator[None]:
    """Time passes while the block lasts; ``history`` is how long (ms) ended intervals stay, ``None`` for ever."""
    tasks = [asyncio.create_task(feeding.run()) for feeding in feedings]
    tasks.append(asyncio.create_task(_sweeping(datasets, history)))
    try:
        yield
    finally:
        for feeding in feedings:
            feeding.close()
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Passing:
    """An application whose data sets live as long as it is up."""

    def __init__(
        self, app: ASGIApp, datasets: Sequence[DataSet], feedings: Sequence[Feeding], history: int | None
    ) -> None:
        self._app, self._datasets, self._feedings, self._history = app, datasets, feedings, history

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on; begin and end with the process."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        async with passing(self._datasets, self._feedings, self._history):
            await self._app(scope, receive, send)


async def _sweeping(datasets: Sequence[DataSet], history: int | None) -> None:
    while True:
        for dataset in datasets:
            keep = 0 if dataset.style.label is Label.EXPIRATION else history
            if keep is not None:
                await _swept(dataset, keep)
        await asyncio.sleep(TICK_S)


async def _swept(dataset: DataSet, keep: int) -> None:
    """Forget what ended so long ago; what cannot be forgotten now is tried again."""
    try:
        await sweep_beside(dataset, dataset.clock() - keep)
    except (FullError, DamagedStoreError) as error:
        _LOG.error("/%s: what has ended cannot be taken out: %s", dataset.name, error)
