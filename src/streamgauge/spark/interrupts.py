"""Ctrl-C during a call of the JVM: jobs are cancelled, and the interrupt is raised after the call has returned.

PySpark's own handler cancels jobs by a call within the interrupted one, and Py4J closes its connections when an
interrupt arrives during a call: it depends on timing which of the two reads a reply, if any.
"""

import signal
import threading
import time
from contextlib import suppress
from typing import Any, Final

import pyspark.sql

AGAIN_S: Final = 0.3
"""How often jobs are cancelled while a call waits."""


class InterruptGuard:
    """Handles Ctrl-C for the main thread; a second one within the same call is raised immediately.

    ``context`` is the one whose jobs are cancelled; ``client`` is Py4J's, shared by all contexts of the process.
    """

    def __init__(self, client: Any, context: pyspark.SparkContext) -> None:
        self.context, self._depth, self._pending = context, 0, False
        self._send = client.send_command
        client.send_command = self.send_command

    def send_command(self, *words: Any, **options: Any) -> Any:
        """Send a command to the JVM like Py4J's client; KeyboardInterrupt if Ctrl-C was pressed meanwhile."""
        if threading.current_thread() is not threading.main_thread():
            # CPython runs signal handlers in the main thread only.
            return self._send(*words, **options)
        self._depth += 1
        try:
            answer = self._send(*words, **options)
        finally:
            self._depth -= 1
        if self._pending and not self._depth:
            self._pending = False
            raise KeyboardInterrupt
        return answer

    def interrupted(self, _number: int, _frame: object) -> None:
        """Cancel the jobs of the running call; without one, or the second time, raise KeyboardInterrupt."""
        if self._depth and not self._pending:
            self._pending = True
            # In another thread, because this one is in the middle of a call of Py4J.
            threading.Thread(target=self._cancel, daemon=True, name="spark-cancel").start()
            return
        self._pending = False
        raise KeyboardInterrupt

    def _cancel(self) -> None:
        """Cancel jobs repeatedly, because new ones may start, until the call returns."""
        with suppress(Exception):  # the JVM may end meanwhile
            while self._pending:
                self.context.cancelAllJobs()
                time.sleep(AGAIN_S)


def guard(context: pyspark.SparkContext) -> None:
    """Let Ctrl-C cancel the jobs of a context, in place of PySpark's handler; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return
    client = context._gateway._gateway_client
    member = getattr(client.send_command, "__self__", None)
    if not isinstance(member, InterruptGuard):
        # Once per client: it outlives contexts, and a guard for each would be nested in the one before.
        member = InterruptGuard(client, context)
    member.context = context
    signal.signal(signal.SIGINT, member.interrupted)
