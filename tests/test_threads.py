"""Threads and processes: the same results with any number of them, no hang, no leak."""

import copy
import hashlib
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

import katro
from katro import Batch, KatroVectorEnv

MODES = ("NextStep", "SameStep", "Disabled")

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")


def absorb(digest, value):
    """Adds the arrays of a result to a digest."""
    if isinstance(value, dict):
        for name in sorted(value):
            digest.update(name.encode())
            absorb(digest, value[name])
    elif isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
        for part in value:
            absorb(digest, part)
    elif value is not None:
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(value.tobytes())


def nth_legal(masks, step):
    """A legal action of every mask that depends on the game and the step only."""
    order = (7 * np.arange(len(masks)) + 11 * step) % masks.sum(axis=1)
    return (masks.cumsum(axis=1) > order[:, None]).argmax(axis=1)


def first(step, k):
    """The rows of the first `k` games of a `Step`."""
    finals = step.finals
    if finals is not None:
        rows = finals.game < k
        finals = finals._make(column if column is None else column[rows] for column in finals)
        finals = finals if len(finals.game) else None
    columns = (column if column is None else column[:k] for column in step[:-1])
    return step._make((*columns, finals))


def digests(n, steps, games=None, **options):
    """What a batch returns in so many steps, a digest for the first `k` of its games each."""
    batch = Batch(n, **options)
    games = [n] if games is None else games
    found = [hashlib.sha256() for _ in games]
    step = batch.reset()
    for i in range(steps):
        step = batch.step(nth_legal(step.action_mask, i))
        for k, digest in zip(games, found, strict=True):
            absorb(digest, first(step, k))
        if options.get("autoreset_mode") == "Disabled":
            step = batch.reset(step.terminated | step.truncated)
    (grids, masks), notations = batch.afterstates(), [board.notation for board in batch.boards()]
    for k, digest in zip(games, found, strict=True):
        absorb(digest, (grids[:k], masks[:k]))
        digest.update(" ".join(notations[:k]).encode())
    return [digest.hexdigest() for digest in found]


def advance(envs, steps=20):
    """Steps a vector environment; the digest of what it returns."""
    digest = hashlib.sha256()
    for i in range(steps):
        result = envs.step(nth_legal(envs.action_masks(), i))
        absorb(digest, result)
    return digest.hexdigest()


def threaded(n=5000, num_threads=2, **options):
    """A vector environment that has used its threads."""
    envs = KatroVectorEnv(n, num_threads=num_threads, **options)
    envs.reset(seed=0)
    advance(envs, 3)
    return envs


def own_threads():
    """The threads of this process that katro has started."""
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read())
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    return sum(name.startswith("katro-") for name in names)


def wait_for_threads(count, seconds=5):
    """Waits until katro has so many threads, which end a moment after their owner."""
    until = time.monotonic() + seconds
    while own_threads() != count and time.monotonic() < until:
        time.sleep(0.01)
    return own_threads()


def run(code, seconds=60):
    """Runs Python code, with the functions of this file, in another process."""
    code = f"import sys; sys.path[:0] = {sys.path!r}; from test_threads import *\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def forked(work, seconds=30):
    """Returns, as a str, what `work` returns in a forked child that ends in time."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 and later warn of a fork where there are threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, str(work()).encode())
            code = 0
        except BaseException:
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writer)
    try:
        answer = ""
        until = time.monotonic() + seconds
        while select.select([reader], [], [], max(0, until - time.monotonic()))[0]:
            part = os.read(reader, 65536).decode()
            if not part:
                break
            answer += part
        else:
            os.kill(child, signal.SIGKILL)
            answer = f"no answer within {seconds} seconds"
    finally:
        _, status = os.waitpid(child, 0)
        os.close(reader)
    assert os.waitstatus_to_exitcode(status) == 0, answer
    return answer


# One digest


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [65, 1000, 5000])
def test_results_do_not_depend_on_the_number_of_threads(mode, n):
    options = {"rules": "katro-4x4", "autoreset_mode": mode, "max_plies": 40, "illegal": "lose"}
    steps = 300 if n < 5000 else 100
    found = [digests(n, steps, num_threads=threads, **options) for threads in (1, 2, 8)]
    assert found == [found[0]] * 3


@pytest.mark.slow
def test_results_of_long_games_do_not_depend_on_the_number_of_threads_or_reused_arrays():
    found = [
        digests(5000, 300, autoreset_mode="SameStep", **options)
        for options in (
            {"num_threads": 1},
            {"num_threads": 2, "copy": False},
            {"num_threads": 8},
            {},
        )
    ]
    assert found == [found[0]] * 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_games_do_not_depend_on_the_size_of_the_batch(mode, threads):
    games = [1, 7, 64, 65, 1000]
    options = {
        **{"rules": "katro-4x4", "autoreset_mode": mode, "max_plies": 40},
        "num_threads": threads,
    }
    together = digests(5000, 100, games, **options)
    assert together == [digests(k, 100, **options)[0] for k in games]


def test_the_order_of_finals_does_not_depend_on_threads():
    for threads in (1, 2, 8):
        batch = Batch(5000, num_threads=threads, autoreset_mode="SameStep", max_plies=1)
        batch.reset()
        for _ in range(20):
            finals = batch.step(np.arange(5000) % 6).finals
            assert finals.game.tolist() == list(range(5000))
            assert (finals.laps[::6] == 7).all()


def test_the_first_of_several_illegal_actions_is_named_whatever_the_threads():
    actions = np.zeros(5000, int)
    actions[[1500, 2600, 4999]] = 6
    for threads in (1, 2, 8):
        batch = Batch(5000, num_threads=threads)
        batch.reset()
        for _ in range(20):
            with pytest.raises(katro.IllegalMoveError, match="game 1500: illegal action 6"):
                batch.step(actions)
        assert batch.boards() == [katro.Board()] * 5000


@pytest.mark.parametrize("threads", [1, 2])
def test_actions_that_change_during_a_step_are_refused_or_played_as_they_were_checked(threads):
    # An action that was not checked would be played on an empty column.
    n = 5000
    batch = Batch(n, num_threads=threads, copy=False)
    batch.reset()
    actions = np.zeros(n, int)
    over = threading.Event()

    def work(i):
        if i == 1:
            rng = np.random.default_rng(0)
            while not over.is_set():
                actions[:] = rng.integers(6, size=n)
                actions[-1] = rng.integers(-1, 7)
            return None
        played = refused = 0
        try:
            for _ in range(600):
                try:
                    step = batch.step(actions)
                except katro.IllegalMoveError:
                    refused += 1
                    batch.reset()
                    continue
                played += 1
                over_now = step.terminated | step.truncated
                assert (step.observation.reshape(n, -1).sum(axis=1) == 72).all()
                assert (step.laps[~over_now] > 0).all()
        finally:
            over.set()
        return played, refused

    played, refused = in_threads(work, 2)[0]
    assert played > 10
    assert refused > 10


# Processes


def answer(envs, connection):
    """What a child process does with an environment of its parent."""
    connection.send(advance(envs))
    connection.close()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_steps_after_its_parent_has_used_threads(method):
    # rayon#708, polars#19149: a pool that did not live through a fork hangs for ever.
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    context = multiprocessing.get_context(method)
    envs = threaded(autoreset_mode="SameStep", max_plies=10)
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(envs, writer))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    writer.close()
    try:
        assert reader.poll(30), "the child hangs"
        digest = reader.recv()
        process.join(30)
        assert process.exitcode == 0
    finally:
        process.kill()
        process.join()
        process.close()
        reader.close()
    # The parent goes on as if nothing had been.
    assert digest == advance(envs)


@needs_fork
@needs_proc
def test_a_forked_child_steps_the_same_object():
    envs = threaded()

    def work():
        assert own_threads() == 0
        # Where the machine is busy the parent may have been stepping alone, for so long.
        time.sleep(0.25)
        digest = advance(envs)
        assert wait_for_threads(1) == 1
        return digest

    children = [forked(work) for _ in range(3)]
    assert children == [advance(envs)] * 3


@needs_fork
def test_a_forked_child_steps_a_batch_that_has_used_no_threads():
    envs = KatroVectorEnv(5000, num_threads=2)
    envs.reset()
    assert forked(lambda: advance(envs)) == advance(envs)


@needs_fork
def test_a_child_of_a_child_steps():
    envs = threaded()

    def work():
        # Its threads are those of the child by now.
        return advance(envs, 5), forked(lambda: advance(envs))

    assert forked(lambda: forked(lambda: advance(envs, 5))) == forked(lambda: advance(envs, 5))
    assert forked(work) == str((advance(envs, 5), advance(envs)))


@needs_fork
def test_a_forked_child_plays_rollouts_and_makes_batches():
    batch = Batch(5000, num_threads=2)
    batch.reset()
    batch.rollout(10)

    def work():
        other = Batch(5000, num_threads=2)
        other.reset()
        return batch.rollout(50, seed=1), other.rollout(50, seed=1)

    child = forked(work)
    other = Batch(5000, num_threads=2)
    other.reset()
    assert child == str((batch.rollout(50, seed=1), other.rollout(50, seed=1)))


@needs_fork
@pytest.mark.parametrize("steps", [0, 2])
def test_a_forked_child_can_drop_what_it_inherited(steps):
    held = [threaded()]

    def work():
        advance(held[0], steps)
        held.clear()
        return "dropped"

    assert forked(work) == "dropped"
    advance(held[0])


@needs_fork
@pytest.mark.parametrize("steps", [0, 2])
def test_a_forked_child_can_end_as_every_interpreter_does(steps):
    output = run(f"""
envs = threaded()
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
if child == 0:
    advance(envs, {steps})
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert output == "0\n"


@needs_fork
def test_a_child_can_be_forked_while_another_thread_steps():
    envs, other = threaded(), threaded(50_000)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            other.step(nth_legal(other.action_masks(), 0))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        children = [forked(lambda: advance(envs)) for _ in range(5)]
    finally:
        stop.set()
        thread.join()
    assert children == [advance(envs)] * 5


def test_an_interpreter_ends_while_there_are_threads():
    run("envs = threaded()")
    run("envs = threaded(); envs.envs = envs")


# When there are threads


@needs_proc
def test_importing_katro_starts_no_thread():
    code = """
import os
import gymnasium, numpy
before = len(os.listdir("/proc/self/task"))
import katro
print(len(os.listdir("/proc/self/task")) - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("0\n", "")


@needs_proc
def test_few_games_start_no_thread():
    output = run("""
before = len(os.listdir("/proc/self/task"))
for n in (1, 64, 1000):
    for options in ({}, {"num_threads": 2}, {"num_threads": 8}):
        batch = Batch(n, **options)
        batch.reset()
        batch.step(np.zeros(n, int))
        batch.rollout(50)
envs = katro.KatroEnv()
envs.reset()
envs.step(0)
print(len(os.listdir("/proc/self/task")) - before, own_threads())
""")
    assert output == "0 0\n"


@needs_proc
@pytest.mark.parametrize("use", ["batch.step(np.zeros(9000, int))", "batch.rollout(1)"])
def test_threads_are_started_on_first_use_and_end_with_their_owner(use):
    output = run(f"""
batch = Batch(9000, num_threads=3)
found = [own_threads()]
batch.reset()
{use}
found.append(wait_for_threads(2))
{use}
found.append(own_threads())
other = Batch(9000, num_threads=2)
found.append(own_threads())
other.reset()
other.rollout(1)
found.append(wait_for_threads(3))
del batch
found.append(wait_for_threads(1))
del other
found.append(wait_for_threads(0))
print(*found)
""")
    assert output == "0 2 2 2 3 1 0\n"


@needs_proc
def test_a_copy_has_no_threads_until_it_is_stepped():
    output = run("""
envs = threaded()
found = [wait_for_threads(1)]
other = copy.deepcopy(envs)
found.append(own_threads())
assert advance(other) == advance(envs)
found.append(wait_for_threads(2))
del other
found.append(wait_for_threads(1))
print(*found)
""")
    assert output == "1 1 2 1\n"


# Python threads


def in_threads(work, count):
    """What `work` returns for 0, 1, 2 and so on, each in its own Python thread."""
    results, errors = [None] * count, []

    def call(i):
        try:
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for error in errors:
        raise error
    return results


@pytest.mark.parametrize("num_threads", [1, 2])
def test_python_threads_step_environments_of_their_own(num_threads):
    def work(i):
        n = (5000, 64, 1000, 3)[i]
        options = {"num_threads": num_threads, "autoreset_mode": "SameStep", "max_plies": 20}
        batch = Batch(n, **options)
        batch.reset()
        return digests(n, 60, **options), batch.rollout(100, seed=i)

    assert in_threads(work, 4) == [work(i) for i in range(4)]


@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("n", [10, 5000])
def test_two_python_threads_in_one_environment_are_refused_or_right(n, copied):
    options = {"illegal": "lose", "max_plies": None, "num_threads": 2, "copy": copied}
    envs = KatroVectorEnv(n, **options)
    envs.reset()
    actions = np.arange(n) % 6
    begin = threading.Barrier(2)

    def work(_):
        begin.wait()
        done = 0
        for _ in range(300):
            try:
                envs.step(actions)
                done += 1
            except RuntimeError as error:
                assert "borrowed" in str(error)  # noqa: PT017
        return done

    done = sum(in_threads(work, 2))
    assert done >= 300
    expected = KatroVectorEnv(n, **options)
    expected.reset()
    for _ in range(done):
        expected.step(actions)
    assert envs.boards() == expected.boards()


@pytest.mark.parametrize(
    "use",
    [
        Batch.action_masks,
        Batch.afterstates,
        Batch.boards,
        Batch.reset,
        Batch.rules.__get__,
        len,
        pickle.dumps,
        copy.deepcopy,
        lambda batch: batch.step([0]),
        lambda batch: batch.rollout(1),
        lambda batch: batch.set_boards([katro.Board()]),
    ],
    ids=[
        *("masks", "afterstates", "boards", "reset", "rules", "len", "pickle", "copy"),
        *("step", "rollout", "set_boards"),
    ],
)
def test_a_batch_that_another_thread_uses_says_so(use):
    # Such as the board of a running rollout: an error, never a panic.
    batch = Batch(1)
    batch.reset()

    def work(i):
        if i == 0:
            return batch.rollout(1_200_000).plies
        time.sleep(0.05)
        with pytest.raises(RuntimeError, match="borrowed"):
            use(batch)
        return None

    assert in_threads(work, 2) == [1_200_000, None]
    use(batch)


def ticks_during(work):
    """How often another Python thread woke up while `work` ran."""
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        begin = time.perf_counter()
        work()
        end = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    margin = 0.1 * (end - begin)
    return sum(begin + margin < tick < end - margin for tick in ticks)


def test_other_python_threads_run_during_a_rollout():
    batch = Batch(1000)
    batch.reset()
    assert ticks_during(lambda: batch.rollout(10_000)) > 20


def test_other_python_threads_run_during_a_step_and_afterstates():
    batch = Batch(300_000, num_threads=1, copy=False)
    actions = nth_legal(batch.reset().action_mask, 0)
    assert ticks_during(lambda: batch.step(actions)) >= 2
    assert ticks_during(batch.afterstates) >= 2


# Memory


MEMORY = """
import gc

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

def growth(work, times, parts=10):
    for i in range(times // parts):
        work(i)
    found = [resident()]
    for _ in range(parts):
        for i in range(times // parts):
            work(i)
        found.append(resident())
    return max(found) - found[0], found
"""


def assert_flat(code):
    grown, _, found = run(MEMORY + code).partition(" ")
    assert float(grown) < 5, found


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "copied", "observation"),
    [("NextStep", True, "dict"), ("SameStep", False, "grid")],
)
def test_memory_is_flat_over_ten_million_steps(mode, copied, observation):
    # ManiSkill#320: information that referred to itself.
    assert_flat(f"""
envs = KatroVectorEnv(
    8192, num_threads=2, autoreset_mode="{mode}", copy={copied}, observation="{observation}"
)
envs.reset()
masks = envs.action_masks()

def work(i):
    global masks
    infos = envs.step(nth_legal(masks, i))[4]
    masks = infos["action_mask"]

print(*growth(work, 1250))
""")


@needs_proc
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_is_flat_over_refused_steps_and_rollouts(threads):
    assert_flat(f"""
batch = Batch(3000, num_threads={threads})
batch.reset()
bad = np.full(3000, 6)

def work(i):
    for actions in (bad, bad[:5], None, "x"):
        try:
            batch.step(actions)
        except (ValueError, TypeError):
            pass
    batch.rollout(3, i)
    batch.afterstates()

print(*growth(work, 500))
""")


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        "katro.KatroEnv()",
        "KatroVectorEnv(64)",
        "Batch(64)",
        "Batch(64, copy=False)",
    ],
)
def test_memory_is_flat_over_ten_thousand_constructions(make):
    assert_flat(f"""
def work(i):
    made = {make}
    made.reset()
    made.step(0 if isinstance(made, katro.KatroEnv) else np.zeros(64, int))

print(*growth(work, 10_000))
""")


@needs_proc
def test_memory_and_threads_are_flat_over_three_hundred_pools():
    output = run(
        MEMORY
        + """
def work(i):
    batch = Batch(5000, num_threads=4)
    batch.reset()
    batch.rollout(1)

grown, found = growth(work, 300)
print(grown, wait_for_threads(0), found)
"""
    )
    grown, threads, found = output.split(" ", 2)
    assert float(grown) < 5, found
    assert threads == "0"
