"""examples/distributed_selfplay.py on Ray: workers that die, and runs that are resumed."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import ray

import katro

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "distributed_selfplay.py"

spec = importlib.util.spec_from_file_location("distributed_selfplay", EXAMPLE)
distributed = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(distributed)
# As when it runs as a script: another machine has no such modules.
ray.cloudpickle.register_pickle_by_value(distributed)
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def cluster():
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def start(cluster):
    """Starts the workers of learners, and stops them after the test."""
    started = []

    def start(learner, workers=1):
        learner.start(workers)
        started.append(learner)
        return learner

    yield start
    for learner in started:
        stop(learner)


def stop(learner):
    for worker in learner.workers:
        ray.kill(worker)


def updates(learner, n):
    for _ in range(n):
        learner.update()
    return learner


def plain(seed, n):
    """What a run of one worker is: rounds and steps of Adam in turn, without Ray."""
    learner = distributed.Learner(seed)
    state = distributed.new_state(np.random.default_rng(learner.rng.integers(2**63)))
    worker = distributed.Worker(state)
    for _ in range(n):
        slope, state = worker.play(learner.network)
        learner.updates += 1
        learner.plies += distributed.GAMES * distributed.PLIES
        learner.descend(slope)
    learner.states = [state]
    return learner


def expected(seed, n):
    """The contents of such a run; in another process, since sums depend on the BLAS threads."""
    return ray.get(ray.remote(num_cpus=1)(lambda: contents(plain(seed, n))).remote())


def contents(learner):
    """All that must be equal in equal runs, as numbers."""
    arrays = [*learner.network, *learner.means, *learner.squares]
    return (
        learner.updates,
        learner.plies,
        [array.tolist() for array in arrays],
        learner.rng.bit_generator.state,
        [
            (
                [board.notation for board in games.boards()],
                observed.tolist(),
                rng.bit_generator.state,
            )
            for games, observed, rng in learner.states
        ],
    )


def test_two_workers_make_progress_and_every_round_is_counted_once(start):
    learner = start(distributed.Learner(0), 2)
    updates(learner, 300)
    assert learner.updates == 300
    assert learner.plies == 300 * 256 * 4
    assert learner.replaced == 0
    assert len(learner.rounds) == 2
    player = distributed.player(learner.network)
    assert katro.play_match(player, "random", 100, opening=2).win_rate > 0.8


def test_one_worker_is_a_plain_loop(start):
    assert contents(updates(start(distributed.Learner(3)), 6)) == expected(3, 6)


@pytest.mark.parametrize("how", ["ray.kill", "SIGKILL"])
def test_a_worker_that_is_killed_costs_its_unfinished_round_only(start, how):
    learner = updates(start(distributed.Learner(3)), 2)
    for n in (1, 2):
        worker = learner.workers[0]
        if how == "ray.kill":
            ray.kill(worker)
        else:
            pid = ray.get(worker.__ray_call__.remote(lambda self: os.getpid()))
            updates(learner, 1)
            os.kill(pid, signal.SIGKILL)
        updates(learner, 2)
        assert learner.replaced == n
    # The one that took its place played the same round again, so nothing has changed.
    assert contents(learner) == expected(3, learner.updates)


def test_the_others_go_on_where_a_worker_is_killed(start):
    learner = updates(start(distributed.Learner(0), 2), 4)
    ray.kill(learner.workers[1])
    # Until it has been noticed, and the new one has answered.
    while not learner.replaced or learner.deaths[1]:
        learner.update()
    assert learner.replaced == 1
    assert learner.plies == learner.updates * 1024
    assert sorted(learner.rounds.values()) == [0, 1]


def test_a_run_in_which_every_worker_dies_ends(start, monkeypatch):
    class Dying(distributed.Worker):
        def play(self, network):
            os._exit(1)

    monkeypatch.setattr(distributed, "RETRIES", 1)
    monkeypatch.setattr(distributed, "RemoteWorker", ray.remote(num_cpus=1)(Dying))
    learner = start(distributed.Learner(0))
    with pytest.raises(ray.exceptions.RayActorError):
        learner.update()
    assert (learner.updates, learner.plies, learner.replaced) == (0, 0, 1)


def test_a_mistake_in_a_worker_ends_the_run_at_once(start, monkeypatch):
    class Wrong(distributed.Worker):
        def play(self, network):
            raise ValueError("a mistake")

    monkeypatch.setattr(distributed, "RemoteWorker", ray.remote(num_cpus=1)(Wrong))
    learner = start(distributed.Learner(0))
    with pytest.raises(ValueError, match="a mistake"):
        learner.update()
    assert (learner.updates, learner.replaced) == (0, 0)


def test_a_resumed_run_is_the_one_that_never_stopped(start, tmp_path):
    first = updates(start(distributed.Learner(5)), 4)
    first.save(tmp_path / "run")
    stop(first)
    second = distributed.Learner(99)
    second.load(tmp_path / "run")
    assert second.seconds == first.seconds > 0
    assert (second.updates, second.plies) == (4, 4 * 1024)
    updates(start(second), 3)
    assert contents(second) == expected(5, 7)


def test_a_run_can_be_resumed_with_more_or_fewer_workers(start, tmp_path):
    learner = distributed.Learner(0)
    for workers in (1, 2, 1):
        updates(start(learner, workers), 3)
        learner.save(tmp_path / "run")
        stop(learner)
        learner = distributed.Learner(0)
        learner.load(tmp_path / "run")
    assert learner.updates == 9
    seeds = [rng.bit_generator.seed_seq.entropy for _, _, rng in learner.states]
    assert len(set(seeds)) == 2


def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "run"
    learner = plain(0, 1)
    learner.save(path)
    before = path.read_bytes()
    updated = plain(0, 2)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        updated.save(path)
    assert path.read_bytes() == before
    monkeypatch.undo()
    updated.save(path)
    assert list(tmp_path.iterdir()) == [path]
    learner.load(path)
    assert learner.updates == 2


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-1], "it is damaged"),
        (lambda content: content[:1000] + b"?" + content[1001:], "it is damaged"),
        (lambda content: b"", "it is damaged"),
        (None, "No such file"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_ends_the_program(tmp_path, damage, message):
    path = tmp_path / "run"
    learner = plain(0, 1)
    if damage:
        learner.save(path)
        path.write_bytes(damage(path.read_bytes()))
    before = contents(learner)
    with pytest.raises(SystemExit, match=f"cannot resume from .*run: .*{message}"):
        learner.load(path)
    assert contents(learner)[:4] == before[:4]


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLE, "--games", "20", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_example_runs_and_goes_on_from_its_checkpoint(tmp_path):
    here = ("--checkpoint", tmp_path / "runs")
    code, out, err = run("--workers", 2, "--updates", 30, *here)
    assert code == 0, err
    assert "30,720 plies in 30 updates" in out
    assert "plies/s, 0 workers replaced" in out
    assert "selfplay against random" in out
    assert "selfplay against greedy" in out
    code, _, err = run("--updates", 50, *here)
    assert code == 2
    assert "holds a run already: go on with --resume" in err
    code, out, err = run("--workers", 1, "--updates", 50, *here, "--resume")
    assert code == 0, err
    assert "resumed after 30 updates, 30,720 plies" in out
    assert "51,200 plies in 50 updates" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", 0], "--workers must be more than 0, got 0"),
        (["--seconds", -1], "--seconds must be more than 0, got -1"),
        (["--seconds", "nan"], "--seconds must be more than 0, got nan"),
        (["--seed", -1], "--seed must be 0 or more, got -1"),
        (["--checkpoint", __file__], "File exists"),
        (["--address", "nonsense"], "there is no Ray cluster at nonsense"),
        (["--resume"], "--resume needs the --checkpoint"),
        (["--resume", "--checkpoint", "nowhere"], "cannot resume from nowhere"),
    ],
)
def test_wrong_arguments_are_one_sentence(monkeypatch, capsys, arguments, message):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        distributed.main()
    assert message in f"{caught.value} {capsys.readouterr().err}"


def test_it_needs_ray_and_numpy_only(python):
    python(
        "import runpy, sys\n"
        "for name in ('torch', 'ray.rllib', 'ray.tune', 'matplotlib', 'tqdm'):\n"
        "    sys.modules[name] = None\n"
        f"runpy.run_path({str(EXAMPLE)!r}, run_name='example')\n"
    )
