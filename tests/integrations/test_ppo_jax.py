"""The example of PPO in JAX: its estimates against plain loops, and a short run."""

import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import katro

from .conftest import ROOT


@pytest.fixture(scope="module")
def ppo():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import ppo_jax

        yield ppo_jax
    finally:
        sys.path.remove(str(ROOT / "examples"))


@pytest.fixture(scope="module")
def network(ppo):
    return ppo.make_network(jax.random.key(0))


@pytest.fixture(scope="module")
def rollout(ppo, network):
    games = ppo.Games(32, seed=1)
    for i in range(6):  # until games end
        rollout = games.play(network, jax.random.key(i))
    assert rollout.over.any()
    return rollout


def test_an_illegal_action_has_no_probability_and_no_gradient(ppo, network):
    batch = katro.Batch(1)
    batch.set_boards([katro.Board.from_grid([[1] * 6] * 5 + [[0, 1, 0, 0, 2, 0]])])
    grids, masks = batch.afterstates()
    assert masks.tolist() == [[False, True, False, False, True, False]]
    probabilities = np.exp(ppo.log_policy(network, grids, masks))
    assert (probabilities > 0).tolist() == masks.tolist()
    assert probabilities.sum() == pytest.approx(1)

    def entropy(network):
        log_probs = ppo.log_policy(network, grids, masks)
        return (jax.numpy.exp(log_probs) * log_probs).sum()

    for slope in jax.grad(entropy)(network).values():
        assert np.isfinite(slope).all()


def test_no_illegal_action_is_drawn(ppo, network):
    batch = katro.Batch(2000)
    step = batch.reset()
    for i in range(100):
        grids, masks = batch.afterstates()
        actions, log_prob, _ = ppo.draw(network, step.observation, grids, masks, jax.random.key(i))
        assert np.isfinite(log_prob).all()
        step = batch.step(np.where(masks.any(axis=1), actions, 0))  # raises if one is illegal


def test_the_next_value_is_the_opponents_and_a_won_game_has_none(ppo, network, rollout):
    for t in range(ppo.PLIES - 1):
        expected = np.where(rollout.over[t], 0, -rollout.value[t + 1])
        won = rollout.reward[t] != 0
        np.testing.assert_array_equal(rollout.over[t][won], True)
        goes_on = ~rollout.over[t] | won
        np.testing.assert_allclose(rollout.next_value[t][goes_on], expected[goes_on], atol=1e-6)


def test_a_game_that_is_cut_off_is_worth_what_its_last_position_is(ppo, network, monkeypatch):
    monkeypatch.setattr(ppo, "TRAINING_MAX_PLIES", 5)
    rollout = ppo.Games(3, seed=0).play(network, jax.random.key(0))
    assert rollout.over[4::5].all()
    assert rollout.over.sum() == rollout.over[4::5].size
    for t in range(4, ppo.PLIES, 5):
        for i in range(3):
            board = katro.Board.from_grid(rollout.observation[t, i])
            last = board.play(int(rollout.action[t, i]))
            value, _ = ppo.outputs(network, last.observation()[None])
            assert rollout.next_value[t, i] == pytest.approx(-float(value[0]), abs=1e-6)


def test_advantages_are_those_of_a_plain_loop(ppo, rollout):
    found = np.asarray(ppo.advantages(rollout))
    for game in range(rollout.over.shape[1]):
        advantage = 0.0
        for t in reversed(range(ppo.PLIES)):
            if rollout.over[t, game]:
                advantage = 0.0
            surprise = rollout.reward[t, game] + rollout.next_value[t, game]
            advantage = surprise - rollout.value[t, game] - ppo.LAMBDA * advantage
            assert found[t, game] == pytest.approx(advantage, abs=1e-5)


def test_a_short_run_learns_more_than_chance(tmp_path):
    example = ROOT / "examples" / "ppo_jax.py"
    options = ["--updates", "10", "--envs", "128", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example), *options],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rate = re.search(r"after training: wins ([\d.]+)% of 1000 games against random", done.stdout)
    assert rate, done.stdout
    assert float(rate[1]) > 90
    assert "against greedy" in done.stdout
    with np.load(tmp_path / "weights.npz") as weights:
        assert {"w1", "b1", "w2", "b2", "w3", "b3"} == set(weights)
        assert all(np.isfinite(array).all() for array in weights.values())


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (("--seconds", "0"), "--seconds must be more than 0, got 0.0"),
        (("--updates", "-1"), "--updates must be more than 0, got -1"),
        (("--envs", "0"), "--envs must be more than 0, got 0"),
        (("--seed", "-1"), "--seed must be 0 or more, got -1"),
        (("--out", __file__), "File exists"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_done(
    ppo, wrong, sentence, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["ppo_jax.py", *wrong])
    with pytest.raises(SystemExit, match="2"):
        ppo.main()
    assert sentence in capsys.readouterr().err.splitlines()[-1]
