"""The example of PPO in PyTorch: its estimates against plain loops, and short runs."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import katro

torch.set_num_threads(1)

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def ppo():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import ppo_torch
    finally:
        sys.path.remove(str(EXAMPLES))
    return ppo_torch


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / "ppo_torch.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def agent_of(ppo, rules="katro-4x4", seed=0):
    """An agent that prefers some actions, unlike one that has learnt nothing."""
    torch.manual_seed(seed)
    agent = ppo.Agent(katro.Rules.named(rules))
    torch.nn.init.normal_(agent.actor.weight)
    return agent


def test_ppo_trains_saves_and_says_how_strong_it_is(ppo, tmp_path):
    arguments = ("--rules", "katro-4x4", "--games", 100, "--envs", 64, "--out", tmp_path)
    done = run("--seconds", 5, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert re.search(
        r"100% +[\d,]+ steps, [\d,]+ a second: won [\d.]+% of [\d,]+ games", done.stdout
    )
    assert f"saved {tmp_path / 'weights.pt'}" in done.stdout
    for name in ("random", "greedy"):
        assert f"ppo against {name}: " in done.stdout
    assert len(re.findall(r"win rate [\d.]+% \(95 %: [\d.]+% to [\d.]+%\)", done.stdout)) == 2
    agent = ppo.Agent(katro.Rules.named("katro-4x4"))
    agent.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    assert agent.actor.weight.any()


def test_the_same_seed_and_steps_give_the_same_weights(tmp_path):
    weights = []
    for seed in (1, 1, 2):
        out = tmp_path / str(len(weights))
        done = run("--steps", 4000, "--seed", seed, "--games", 2, "--envs", 64, "--out", out)
        assert done.returncode == 0, done.stderr
        weights.append(torch.load(out / "weights.pt", weights_only=True))
    same = [all(torch.equal(weights[0][key], other[key]) for key in other) for other in weights]
    assert same == [True, True, False]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (("--seconds", 0), "--seconds must be more than 0, got 0.0"),
        (("--seconds", "nan"), "--seconds must be more than 0, got nan"),
        (("--steps", 0), "--steps must be more than 0, got 0"),
        (("--envs", 0), "--envs must be more than 0, got 0"),
        (("--games", -2), "--games must be more than 0, got -2"),
        (("--seed", -1), "--seed must be 0 or more, got -1"),
        (("--opponent", "nobody"), '"nobody"'),
        (("--rules", "chess"), 'unknown rules "chess"'),
        (("--out", __file__), "File exists"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_done(wrong, sentence, tmp_path):
    done = run("--out", tmp_path, *wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_agent_of_rules_that_bind_players_keeps_to_them_in_its_matches(ppo, tmp_path):
    done = run("--rules", "katro-fieldnotes", "--steps", 4000, "--games", 20, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ppo against greedy: " in done.stdout


def test_an_illegal_action_has_the_probability_0_and_no_gradient(ppo):
    agent = agent_of(ppo)
    envs = katro.Batch(64, rules="katro-4x4", autoreset_mode="SameStep")
    envs.reset(seed=0)
    seen = []
    for _ in range(60):
        envs.step(envs.choose("random"))
        seen.append(envs.afterstates())
    grids, masks = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*seen, strict=True))
    assert not masks.all()
    log_probs = agent.policy(grids, masks)
    assert (log_probs.exp()[~masks] == 0).all()
    assert torch.allclose(log_probs.exp().sum(dim=1), torch.ones(len(masks)))
    drawn = log_probs.exp().multinomial(500, replacement=True)
    assert masks.gather(1, drawn).all()
    entropy = ppo.entropy_of(log_probs)
    legal = torch.distributions.Categorical(probs=log_probs.exp())
    assert torch.allclose(entropy, legal.entropy(), atol=1e-5)
    (entropy.sum() + log_probs[masks].sum()).backward()
    for weight in (*agent.body.parameters(), *agent.actor.parameters()):
        assert weight.grad.isfinite().all()


def test_one_legal_action_is_certain(ppo):
    masks = torch.tensor([[False, True, False, False]])
    log_probs = agent_of(ppo).policy(torch.ones(1, 4, 4, 4, dtype=torch.uint8), masks)
    assert log_probs.exp().tolist() == [[0, 1, 0, 0]]
    assert ppo.entropy_of(log_probs).item() == 0


def test_the_agent_tells_small_numbers_of_seeds_apart(ppo):
    agent = ppo.Agent(katro.Rules())
    assert len({tuple(row) for row in agent.features.tolist()}) == 73
    assert agent.features[[0, 3, 11]].tolist() == [[0] * 5, [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]]


def advantages_by_hand(ppo, rewards, values, following, ends):
    """Sums of discounted errors, game by game, up to the end of the game or of the rollout."""
    steps, games = rewards.shape
    result = np.zeros((steps, games))
    for game in range(games):
        for t in range(steps):
            for later in range(t, steps):
                error = rewards[later, game] - values[later, game]
                error += ppo.DISCOUNT * following[later, game]
                result[t, game] += (ppo.DISCOUNT * ppo.TRACE) ** (later - t) * error
                if ends[later, game]:
                    break
    return result


def test_advantages_are_those_of_a_plain_loop(ppo):
    rng = np.random.default_rng(0)
    shape = (40, 5)
    rewards, values, following = rng.normal(size=(3, *shape))
    terminated, truncated = rng.random((2, *shape)) < 0.1
    following[terminated] = 0
    ends = terminated | truncated
    assert terminated.any()
    assert (truncated & ~terminated).any()
    tensors = map(torch.from_numpy, (rewards, values, following, ends))
    expected = advantages_by_hand(ppo, rewards, values, following, ends)
    assert np.allclose(ppo.advantages_of(*tensors), expected)


def test_nothing_of_the_next_game_reaches_back_over_the_end(ppo):
    shape = (6, 2)
    torch.manual_seed(0)
    rewards, values, following = torch.randn(3, *shape)
    ends = torch.zeros(shape, dtype=torch.bool)
    ends[2] = True
    before = ppo.advantages_of(rewards, values, following, ends)
    rewards[3:], values[3:], following[3:] = 9, 9, 9
    after = ppo.advantages_of(rewards, values, following, ends)
    assert torch.equal(before[:3], after[:3])
    assert not torch.equal(before[3:], after[3:])


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("max_plies", [8, 9])
def test_what_follows_a_step_is_worth_what_its_position_is_to_the_agent(
    ppo, seat, max_plies, monkeypatch
):
    monkeypatch.setattr(ppo, "ROLLOUT", 60)
    agent = agent_of(ppo)

    def value(grid):
        with torch.no_grad():
            return agent.value(torch.from_numpy(grid)).item()

    options = {"rules": "katro-4x4", "opponent": "random", "seat": seat, "max_plies": max_plies}
    envs, twin = (katro.KatroVectorEnv(16, autoreset_mode="SameStep", **options) for _ in "12")
    observations, infos = twin.reset(seed=0)
    rollout, _ = ppo.collect(agent, envs, envs.reset(seed=0)[0])
    won = cut_off = 0
    for t in range(60):
        assert rollout.grids[t].tolist() == observations.tolist()
        assert rollout.masks[t].tolist() == infos["action_mask"].astype(bool).tolist()
        assert rollout.afterstates[t].tolist() == twin.afterstates()[0].tolist()
        assert rollout.masks[t].gather(1, rollout.actions[t][:, None]).all()
        observations, rewards, terminated, truncated, infos = twin.step(rollout.actions[t].numpy())
        assert rollout.rewards[t].tolist() == rewards.tolist()
        assert rollout.ends[t].tolist() == (terminated | truncated).tolist()
        for game in range(16):
            last = infos["final_obs"][game] if truncated[game] else observations[game]
            expected = 0 if terminated[game] else value(last)
            assert rollout.following[t, game].item() == pytest.approx(expected, abs=1e-5)
        won += terminated.sum()
        cut_off += truncated.sum()
    assert won > 5
    assert cut_off > 20


def test_an_update_makes_what_paid_more_likely(ppo):
    agent = agent_of(ppo)
    batch = katro.Batch(64, rules="katro-4x4")
    grids = torch.from_numpy(batch.reset().observation)
    afterstates, masks = map(torch.from_numpy, batch.afterstates())
    with torch.no_grad():
        before = agent.policy(afterstates, masks)
        values = agent.value(grids)
    actions = torch.arange(64).remainder(4)
    row = ppo.Rollout(
        grids=grids,
        afterstates=afterstates,
        masks=masks,
        actions=actions,
        log_probs=before.gather(1, actions[:, None])[:, 0],
        values=values,
        rewards=torch.where(actions == 2, 1.0, -1.0),
        ends=torch.ones(64, dtype=torch.bool),
        following=torch.zeros(64),
    )
    rollout = ppo.Rollout(*(column.expand(8, *column.shape) for column in row))
    ppo.update(agent, torch.optim.Adam(agent.parameters(), 1e-3), rollout)
    after = agent.policy(afterstates, masks)
    assert (after[:, 2] > before[:, 2]).all()
