"""katro.pettingzoo in Tianshou's PettingZooEnv."""

import warnings

import numpy as np
import pytest

import katro

with warnings.catch_warnings():
    # PyTorch and Tianshou warn of what they import.
    warnings.simplefilter("ignore")
    import torch
    from tianshou.algorithm.modelfree.dqn import DQN, DiscreteQLearningPolicy
    from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.algorithm.random import MARLRandomDiscreteMaskedOffPolicyAlgorithm
    from tianshou.data import Collector, ReplayBuffer, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv, PettingZooEnv
    from tianshou.utils.net.common import Net

from katro.pettingzoo import AGENTS, env, raw_env

# A second thread costs more than it gives on a busy machine.
torch.set_num_threads(1)


def make(rules="katro-4x4", max_plies=30):
    return PettingZooEnv(raw_env(rules=rules, max_plies=max_plies))


def random_player(game):
    return MARLRandomDiscreteMaskedOffPolicyAlgorithm(game.action_space)


def dqn_player(game, **options):
    space = game.observation_space["observation"]
    network = Net(state_shape=space.shape, action_shape=game.action_space.n, hidden_sizes=[32])
    policy = DiscreteQLearningPolicy(
        model=network, action_space=game.action_space, eps_training=0.2, eps_inference=0.2
    )
    options = {"n_step_return_horizon": 2, "target_update_freq": 20, **options}
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), **options)


def check(transitions, rules, max_plies):
    """Replays the transitions of one environment on boards; counts wins and games cut off."""
    won, cut_off = [0, 0], 0
    board, plies = katro.Board(rules), 0
    for row in transitions:
        mover = board.to_move
        assert row.obs.agent_id == AGENTS[mover]
        assert row.obs.obs.tolist() == board.observation().tolist()
        assert row.obs.mask.tolist() == board.action_mask.astype(bool).tolist()
        board, plies = board.play(int(row.act)), plies + 1
        reward = [0.0, 0.0]
        if board.is_over:
            reward = [1 - 2 * mover, 2 * mover - 1]
            won[mover] += 1
        truncated = plies == max_plies and not board.is_over
        cut_off += truncated
        assert row.rew.tolist() == reward
        assert (row.terminated, row.truncated) == (board.is_over, truncated)
        assert row.done == (board.is_over or truncated)
        assert row.obs_next.agent_id == AGENTS[board.to_move]
        assert row.obs_next.obs.tolist() == board.observation().tolist()
        if row.done:
            assert row.obs_next.mask.all()
            board, plies = katro.Board(rules), 0
        else:
            assert row.obs_next.mask.tolist() == board.action_mask.astype(bool).tolist()
    return won, cut_off


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize(("rules", "max_plies"), [("katro-4x4", 30), ("katro", 60)])
def test_every_transition_of_two_players_is_right(rules, max_plies, learns):
    np.random.seed(0)
    torch.manual_seed(0)
    game = make(rules, max_plies)
    south = dqn_player(game) if learns else random_player(game)
    players = MultiAgentOffPolicyAlgorithm(algorithms=[south, random_player(game)], env=game)
    envs = DummyVectorEnv([lambda: make(rules, max_plies)] * 3)
    buffer = VectorReplayBuffer(3000, len(envs))
    collector = Collector(players, envs, buffer, exploration_noise=True)
    stats = collector.collect(n_step=1500, reset_before_collect=True)
    counted = [check(list(part.sample(0)[0]), rules, max_plies) for part in buffer.buffers]
    won = np.sum([each for each, _ in counted], axis=0)
    cut_off = sum(each for _, each in counted)
    assert stats.n_collected_episodes == won.sum() + cut_off
    assert cut_off > 10
    if rules == "katro-4x4":
        assert won.min() > 5
    assert (stats.returns.sum(axis=1) == 0).all()
    assert (stats.returns > 0).sum(axis=0).tolist() == won.tolist()


def test_two_steps_on_the_same_player_is_to_move():
    """Why the target of a learner spans two steps: after one the value is the opponent's."""
    np.random.seed(0)
    game = make()
    random = random_player(game)
    players = MultiAgentOffPolicyAlgorithm(algorithms=[random, random_player(game)], env=game)
    buffer = ReplayBuffer(600)
    collector = Collector(players, DummyVectorEnv([make]), buffer)
    collector.collect(n_step=600, reset_before_collect=True)
    rows, _ = buffer.sample(0)
    indices = np.arange(599)
    for steps, same in ((1, False), (2, True)):
        last = indices
        for _ in range(steps - 1):
            last = buffer.next(last)
        goes_on = ~buffer.done[last]
        mover = rows.obs.agent_id[indices]
        equal = buffer.obs_next.agent_id[last] == mover
        assert (equal[goes_on] == same).all()


def test_a_learner_hears_of_the_game_he_lost():
    """The target of South's last ply before North's winning one is -1, discounted once."""
    np.random.seed(0)
    torch.manual_seed(0)
    game = make(max_plies=400)
    south, north = dqn_player(game, gamma=0.9), random_player(game)
    players = MultiAgentOffPolicyAlgorithm(algorithms=[south, north], env=game)
    buffer = ReplayBuffer(2000)
    collector = Collector(players, DummyVectorEnv([lambda: game]), buffer, exploration_noise=True)
    collector.collect(n_episode=30, reset_before_collect=True)
    batch, indices = buffer.sample(0)
    returns = players._preprocess_batch(batch, buffer, indices)["player_0"].returns.flatten()
    souths = indices[batch.obs.agent_id == "player_0"]
    lost = buffer.rew[buffer.next(souths)][:, 0] == -1
    won = buffer.rew[souths][:, 0] == 1
    assert min(lost.sum(), won.sum()) > 3
    assert np.allclose(returns[lost], -0.9)
    assert np.allclose(returns[won], 1)


def test_an_illegal_action_loses_or_is_refused(caplog):
    board = katro.Board.from_grid([[1] * 4] * 3 + [[0, 1, 1, 1]], 0, "katro-4x4")
    game = PettingZooEnv(env(rules="katro-4x4"))
    game.reset(options={"board": board})
    _, rewards, terminated, truncated, _ = game.step(0)
    assert "Illegal move" in caplog.text
    assert (rewards, terminated, truncated) == ([-1, 1], True, False)
    game = make()
    game.reset(options={"board": board})
    with pytest.raises(katro.IllegalMoveError):
        game.step(0)


def test_the_page(check_page):
    names = check_page("tianshou.md", "tianshou", "pettingzoo", "torch")
    assert len(names["buffer"]) == 800
    assert names["buffer"].rew.shape == (4000, 2)
