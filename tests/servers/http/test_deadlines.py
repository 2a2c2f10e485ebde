"""What computes for too long is stopped, and nothing else."""

import gc
import subprocess
import sys
import time
from itertools import count
from threading import Event, Lock, Thread

import pytest

from streamgauge.servers.http import deadlines
from streamgauge.servers.http.deadlines import (
    DEADLINES,
    DeadlineError,
    Deadlines,
    GrowthError,
    Interruption,
    Watched,
    _stop,
)

SHORT = 0.05


def endless():
    for _ in count():
        pass


def litter():
    """Make garbage in circles."""
    for number in count():
        made = [[index] for index in range(number % 5000)]
        made.append(made)


def computed(seconds):
    """Compute for so long, by the thread's own clock."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_an_endless_evaluation_is_stopped_and_the_thread_goes_on():
    for _ in range(3):
        with pytest.raises(DeadlineError, match="longer than it may"), DEADLINES.within(SHORT):
            endless()
    computed(0.1)


def test_what_waits_is_not_stopped():
    with DEADLINES.within(SHORT) as watched:
        time.sleep(0.15)
    assert watched.stopped is None


def test_each_step_has_its_own_time():
    with DEADLINES.within(0.15) as watched:
        for _ in range(8):
            watched.steps += 1
            computed(0.04)
    assert (watched.steps, watched.stopped) == (8, None)


def test_collections_of_garbage_are_nobodys_computing():
    """They look at the objects of all threads, and run in whichever makes the next one."""
    others = [[index] for index in range(100_000)]
    with DEADLINES.within(SHORT) as watched:
        end = time.thread_time() + 4 * SHORT
        while time.thread_time() < end:
            gc.collect()
    assert watched.stopped is None  # where other callbacks are told of collections, the exception is lost in one
    assert watched.collected > 3 * SHORT
    assert len(others) == 100_000


def test_who_makes_garbage_is_stopped():
    """Of what a thread does beside its own computing no more is left out than that takes."""
    with pytest.raises(DeadlineError), DEADLINES.within(SHORT):
        litter()


def test_who_collects_most_of_the_time_is_stopped_no_later():
    """Between two collections is less than the interpreter's switch interval: others go on in a collection only."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        for _ in range(6):
            began = time.thread_time()
            with pytest.raises(DeadlineError), DEADLINES.within(SHORT) as watched:
                litter()
            assert time.thread_time() - began - watched.collected < 8 * SHORT
    finally:
        gc.set_threshold(*usual)


TRACED = """
import sys
from streamgauge.servers.http.deadlines import DEADLINES, DeadlineError
try:
    with DEADLINES.within(0.05):
        while True:
            pass
except DeadlineError:
    sys.settrace(lambda *_: None)
    print(max(1, 2), (lambda: "went on")())
"""


@pytest.mark.server
def test_a_traced_thread_goes_on_after_it_was_stopped():
    """An exception that is taken back leaves CPython 3.11 looking for it, at each call of a traced thread for ever."""
    ran = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout == "2 went on\n"


def test_a_collection_counts_to_the_step_it_runs_in():
    watched = Watched(0, time.CLOCK_MONOTONIC, 1.0, None, steps=1)
    watched.look(10.0, 0)
    watched.collected = 0.8
    assert watched.look(11.1, 0) is None  # 0.3 s of its own, and as much again
    watched.collecting = 11.1
    assert watched.look(15.0, 0) is None
    watched.collecting, watched.steps = None, 2
    assert watched.look(15.0, 0) is None
    assert watched.look(15.9, 0) is None
    assert watched.look(16.0, 0) is DeadlineError


def test_each_stage_of_a_step_has_the_limits_to_itself_and_a_step_those_of_all_its_stages():
    """Two stages of 1 s and 100 bytes: neither is stopped for what both take, and both are if they come again."""
    for unit, limit, error in ((1.0, None, DeadlineError), (0.1, 100, GrowthError)):
        at = ["join"]
        watched = Watched(0, time.CLOCK_MONOTONIC, 1.0, limit, lambda at=at: at[0], steps=1)
        outcomes = []
        for number, stage in enumerate(("join", "join", "query", "query", "join", "query")):
            at[0] = stage
            watched.charge(90)
            outcomes.append(watched.look(0.6 * unit * number, 60 * number))
        assert outcomes == [None] * 4 + [error] * 2
        watched.steps += 1
        assert watched.look(10.0, 1000) is None


def test_only_the_thread_that_computes_is_stopped():
    outcomes = {}

    def run(name, work):
        try:
            with DEADLINES.within(SHORT):
                work()
            outcomes[name] = "done"
        except DeadlineError:
            outcomes[name] = "stopped"

    threads = [Thread(target=run, args=("long", endless)), Thread(target=run, args=("short", lambda: None))]
    threads += [Thread(target=run, args=("idle", lambda: time.sleep(0.15)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {"long": "stopped", "short": "done", "idle": "done"}


def test_what_makes_the_process_grow_is_stopped():
    sizes = count(0, 100)
    watching = Deadlines(lambda: next(sizes))
    with pytest.raises(GrowthError, match="more memory"), watching.within(60, growth=250):
        endless()
    assert next(sizes) < 1000


def test_nobody_else_is_charged_with_what_a_stopped_one_takes():
    """It takes more for as long as it leaves, which are some looks, and the memory stays taken for a while."""
    taken, outcomes, stopped = [0], {}, Event()
    watching = Deadlines(lambda: taken[0])

    def run(name, work):
        try:
            with watching.within(60, growth=250):
                work()
            outcomes[name] = "done"
        except GrowthError:
            outcomes[name] = "stopped"

    def grow():
        taken[0] = 1000
        try:
            endless()
        finally:
            try:
                for _ in range(4):
                    taken[0] += 1000
                    computed(0.05)
                taken[0] += 1000
            finally:
                stopped.set()

    def wait():
        stopped.wait(60)
        time.sleep(0.2)

    calm = Thread(target=run, args=("calm", wait))
    growing = Thread(target=run, args=("growing", grow))
    calm.start()
    growing.start()
    growing.join()
    calm.join()
    assert outcomes == {"growing": "stopped", "calm": "done"}


def test_growth_by_others_that_have_ended_or_just_begun_stops_nobody_who_hardly_computed():
    """Looks are rare where a long call of C lets no thread go on: who begins between two of them is not charged."""
    taken, over = [0], Event()
    watching = Deadlines(lambda: taken[0])

    def grow():
        for _ in range(5):
            with watching.within(60, growth=250):
                taken[0] += 200
                computed(0.1)
        over.set()

    growing = Thread(target=grow)
    with watching.within(60, growth=250):
        growing.start()
        assert over.wait(60)
        computed(0.05)
    growing.join()


def test_of_two_the_one_is_stopped_that_computed_while_the_process_grew():
    """The other has computed for longer, but before."""
    taken, outcomes, stopped, begun = [0], {}, Event(), Event()
    watching = Deadlines(lambda: taken[0])

    def run(name, work):
        try:
            with watching.within(60, growth=250):
                work()
            outcomes[name] = "done"
        except GrowthError:
            outcomes[name] = "stopped"

    def calm():
        computed(0.4)
        begun.set()
        stopped.wait(60)

    def grow():
        try:
            computed(0.05)
            taken[0] = 1000
            endless()
        finally:
            stopped.set()

    first = Thread(target=run, args=("calm", calm))
    first.start()
    assert begun.wait(60)
    run("growing", grow)
    first.join()
    assert outcomes == {"growing": "stopped", "calm": "done"}


def test_what_others_see_is_done_whole():
    """The lock is free again and the work done, whenever the time was over."""
    lock, done = Lock(), []

    def work():
        with DEADLINES.within(SHORT) as watched:
            for number in count():
                with DEADLINES.uninterrupted(watched), lock:
                    computed(0.02)
                    done.append(number)

    with pytest.raises(DeadlineError):
        work()
    assert not lock.locked()
    assert done == list(range(len(done)))
    assert done


def test_an_inner_deadline_leaves_the_outer_one():
    inner = []

    def work():
        with DEADLINES.within(0.1):
            try:
                with DEADLINES.within(0.02):
                    endless()
            except DeadlineError:
                inner.append("stopped")
            endless()

    with pytest.raises(DeadlineError):
        work()
    assert inner == ["stopped"]


def test_a_thread_is_stopped_again_only_when_it_goes_on(monkeypatch):
    """An exception that came at each look came where the block ends too, after a collection of garbage on the way.

    The thread was watched for ever then, and whatever it did next was stopped every 0.02 s: no channel began any more.
    """
    sent = []
    monkeypatch.setattr(
        deadlines.ctypes.pythonapi,
        "PyThreadState_SetAsyncExc",
        lambda thread, error: sent.append((thread.value, error.value)),
        raising=False,
    )
    watched = Watched(1, time.CLOCK_MONOTONIC, 0.0, None)
    for _ in range(5):
        _stop(watched)
    assert sent == [(1, Interruption)]
    watched.sent -= deadlines.AGAIN_S
    watched.whole = True
    _stop(watched)
    assert len(sent) == 1
    watched.whole = False
    watched.collect("start")
    _stop(watched)
    assert len(sent) == 1
    watched.collect("stop")
    _stop(watched)
    assert len(sent) == 1  # others are told of the end still
    watched.in_collection = False
    _stop(watched)
    assert len(sent) == 2
