"""katro.rllib against RLlib's own checks, its episodes and PPO with action masks."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

import katro

with warnings.catch_warnings():
    # RLlib and PyTorch warn of what they import.
    warnings.simplefilter("ignore")
    import ray
    import torch
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.env.env_context import EnvContext
    from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import (
        ActionMaskingTorchRLModule,
    )
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments
    from ray.tune.registry import ENV_CREATOR, _global_registry

import katro.rllib
from katro.rllib import AGENTS, KatroMultiAgentEnv

# The networks are small: a second thread costs more than it gives on a busy machine.
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def cluster():
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def started(board=None, **config):
    env = KatroMultiAgentEnv(config)
    env.reset(options=board and {"board": board})
    return env


def mover(env):
    return AGENTS[env.board.to_move]


def play(env, action):
    return env.step({mover(env): action})


def an_illegal_action():
    """A start for South in which action 0 is illegal."""
    return katro.Board.from_grid([[1, 1, 1, 1]] * 3 + [[0, 1, 1, 1]], 0, "katro-4x4")


@pytest.mark.parametrize("rules", katro.RULES)
def test_rllibs_own_check_passes(rules):
    # It samples without the mask, and some sets have an action that is illegal at the start.
    for _ in range(30):
        check_multiagent_environments(KatroMultiAgentEnv({"rules": rules}))


def test_the_spaces_are_those_of_rllibs_masking():
    env = KatroMultiAgentEnv()
    assert env.possible_agents == env.agents == ["player_0", "player_1"]
    assert env.num_agents == env.max_num_agents == 2
    for agent in AGENTS:
        space = env.get_observation_space(agent)
        assert list(space) == ["action_mask", "observations"]
        assert (space["observations"].shape, space["action_mask"].shape) == ((36,), (6,))
        assert space["observations"].dtype == space["action_mask"].dtype == np.float32
        assert space["observations"].high.max() == 72
        assert env.get_action_space(agent).n == 6
        assert env.get_observation_space(agent) is space


def test_it_is_registered():
    assert _global_registry.contains(ENV_CREATOR, "katro")
    context = EnvContext({"rules": "katro-4x6"}, worker_index=1)
    env = _global_registry.get(ENV_CREATOR, "katro")(context)
    assert isinstance(env, KatroMultiAgentEnv)
    assert env.board == katro.Board("katro-4x6")


def test_the_games_are_those_of_katro_env(rules):
    env = KatroMultiAgentEnv({"rules": rules, "max_plies": 60})
    single = katro.KatroEnv(rules=rules, max_plies=60)
    rng = np.random.default_rng(0)
    ends = set()
    for _ in range(5):
        observations, infos = env.reset()
        seen, info = single.reset()
        over = False
        while not over:
            agent = AGENTS[info["to_move"]]
            assert list(observations) == list(infos) == [agent]
            assert env.observation_spaces[agent].contains(observations[agent])
            assert observations[agent]["observations"].tolist() == seen.ravel().tolist()
            assert observations[agent]["action_mask"].tolist() == info["action_mask"].tolist()
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            seen, reward, terminated, truncated, info = single.step(action)
            observations, rewards, terminateds, truncateds, infos = env.step({agent: action})
            assert rewards == {agent: reward, AGENTS[agent == AGENTS[0]]: -reward}
            assert terminateds == {"__all__": terminated}
            assert truncateds == {"__all__": truncated}
            assert env.board == single.board
            over = terminated or truncated
        ends.add(terminated)
        assert sorted(observations) == sorted(infos) == list(AGENTS)
        views = {agent: observations[agent]["observations"] for agent in AGENTS}
        assert views["player_0"].tolist() == env.board.grid().ravel().tolist()
        assert views["player_1"].tolist() == env.board.grid()[::-1, ::-1].ravel().tolist()
        for agent in AGENTS:
            assert env.observation_spaces[agent].contains(observations[agent])
            assert observations[agent]["action_mask"].all()
    assert ends


def test_the_winner_gets_1_and_the_loser_minus_1_in_the_step_that_ends_the_game():
    board = katro.Board.from_notation("0,1/1,1 S")
    _, rewards, terminateds, truncateds, _ = play(started(board, rules=board.rules), 0)
    assert rewards == {"player_0": 1, "player_1": -1}
    assert (terminateds, truncateds) == ({"__all__": True}, {"__all__": False})
    board = katro.Board.from_grid(board.grid()[::-1, ::-1], 1, board.rules)
    # A game won on its last ply is won.
    env = started(board, rules=board.rules, max_plies=1)
    _, rewards, terminateds, truncateds, _ = play(env, 0)
    assert rewards == {"player_0": -1, "player_1": 1}
    assert (terminateds, truncateds) == ({"__all__": True}, {"__all__": False})


@pytest.mark.parametrize("plies", [1, 2, 7])
def test_the_ply_limit_truncates_exactly_there(plies):
    env = started(max_plies=plies)
    for ply in range(1, plies + 1):
        action = env.board.legal_actions[0]
        observations, rewards, terminateds, truncateds, _ = play(env, action)
        assert rewards == {"player_0": 0, "player_1": 0}
        assert (terminateds, truncateds) == ({"__all__": False}, {"__all__": ply == plies})
    assert len(observations) == 2


@pytest.mark.parametrize(
    "config", [{"max_plies": 1}, {"max_plies": 2}, {"max_plies": 30}, {"illegal": "lose"}, {}]
)
def test_rllibs_episodes_take_every_end(config):
    # They refuse observations that are missing at a truncation, and agents that act out of turn.
    for seed in range(10):
        env = KatroMultiAgentEnv({"rules": "katro-4x4", **config})
        episode = MultiAgentEpisode(
            observation_space=env.observation_spaces, action_space=env.action_spaces
        )
        rng = np.random.default_rng(seed)
        start = katro.Board("katro-4x4").play(seed % 4) if seed % 2 else None
        observations, infos = env.reset(options={"board": start})
        episode.add_env_reset(observations=observations, infos=infos)
        returns = dict.fromkeys(AGENTS, 0.0)
        plies = dict.fromkeys(AGENTS, 0)
        while not episode.is_done:
            (agent,) = episode.get_agents_to_act()
            assert agent == mover(env)
            mask = observations[agent]["action_mask"]
            action = int(rng.choice(4 if "illegal" in config else np.flatnonzero(mask)))
            observations, rewards, terminateds, truncateds, infos = env.step({agent: action})
            episode.add_env_step(
                observations,
                {agent: action},
                rewards,
                infos,
                terminateds=terminateds,
                truncateds=truncateds,
            )
            plies[agent] += 1
            for each in AGENTS:
                returns[each] += rewards[each]
        # Whoever has never moved has no episode.
        for agent, part in episode.agent_episodes.items():
            if plies[agent]:
                assert len(part) == plies[agent]
                assert part.get_return() == returns[agent]
        assert sum(returns.values()) == 0


def test_an_illegal_action_loses():
    env = started(an_illegal_action(), rules="katro-4x4")
    observations, rewards, terminateds, truncateds, _ = env.step({"player_0": 0})
    assert rewards == {"player_0": -1, "player_1": 1}
    assert (terminateds, truncateds) == ({"__all__": True}, {"__all__": False})
    assert sorted(observations) == list(AGENTS)
    assert env.board == an_illegal_action()
    # What ended the last game must not leave a trace in the next.
    observations, _ = env.reset()
    assert list(observations) == ["player_0"]
    play(env, 0)


def test_an_illegal_action_can_be_refused_and_changes_nothing():
    env = started(an_illegal_action(), rules="katro-4x4", illegal="raise")
    with pytest.raises(katro.IllegalMoveError, match="illegal action 0: legal are 1, 2, 3 in"):
        env.step({"player_0": 0})
    assert env.board == an_illegal_action()
    env.step({"player_0": 1})
    assert env.board == an_illegal_action().play(1)


@pytest.mark.parametrize("illegal", ["raise", "lose"])
@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ({"player_0": 6}, katro.IllegalMoveError, "illegal action 6"),
        ({"player_0": -1}, katro.IllegalMoveError, "illegal action -1"),
        ({"player_0": 2**70}, katro.IllegalMoveError, "illegal action"),
        ({"player_0": 1.5}, TypeError, "integer"),
        ({"player_0": None}, TypeError, "integer"),
        ({"player_1": 0}, ValueError, r"player_0 is to move alone, got actions of \['player_1'\]"),
        ({"player_0": 0, "player_1": 0}, ValueError, "player_0 is to move alone"),
        ({}, ValueError, r"player_0 is to move alone, got actions of \[\]"),
    ],
)
def test_wrong_actions_are_refused_and_change_nothing(illegal, actions, error, message):
    env = started(illegal=illegal)
    with pytest.raises(error, match=message):
        env.step(actions)
    assert env.board == katro.Board()
    env.step({"player_0": np.int64(2)})
    assert env.board == katro.Board().play(2)


def test_step_needs_a_reset_first_and_after_the_end():
    env = KatroMultiAgentEnv({"max_plies": 1})
    with pytest.raises(ResetNeeded):
        env.step({"player_0": 0})
    env.reset()
    env.step({"player_0": 0})
    with pytest.raises(ResetNeeded):
        env.step({"player_1": 0})
    env.reset()
    assert env.board == katro.Board()


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"max_steps": 3}, ValueError, "unknown option 'max_steps', known are rules, illegal, "),
        ({"opponent": "random"}, ValueError, "unknown option 'opponent'"),
        ({"rules": "chess"}, ValueError, "chess"),
        ({"rules": 3}, TypeError, "3"),
        ({"illegal": "ignore"}, ValueError, "ignore"),
        ({"max_plies": 0}, ValueError, "0"),
        ({"render_mode": "human"}, ValueError, "human"),
    ],
)
def test_wrong_options_are_refused(config, error, message):
    with pytest.raises(error, match=message):
        KatroMultiAgentEnv(config)


@pytest.mark.parametrize("wrong", ["katro-4x4", 5, ["rules"]])
def test_what_is_no_dict_is_refused_and_changes_nothing(wrong):
    with pytest.raises(TypeError, match="config must be a dict"):
        KatroMultiAgentEnv(wrong)
    env = KatroMultiAgentEnv()
    env.reset()
    env.step({"player_0": 2})
    then = env.board
    with pytest.raises(TypeError, match="options must be a dict or None"):
        env.reset(options=wrong)
    for actions in (wrong, None, "player_1"):
        with pytest.raises(TypeError, match="the actions must be a dict"):
            env.step(actions)
    assert env.board == then
    env.step({"player_1": 2})


def test_a_reset_refuses_a_wrong_board_and_the_game_goes_on():
    env = started()
    env.step({"player_0": 1})
    for options, error in [
        ({"board": katro.Board("katro-4x4")}, ValueError),
        ({"board": [[2] * 6] * 6}, TypeError),
        ({"seat": 0}, ValueError),
        ({"mask": 1}, ValueError),
    ]:
        with pytest.raises(error):
            env.reset(options=options)
        assert env.board == katro.Board().play(1)
    env.step({"player_1": env.board.legal_actions[0]})
    board = katro.Board().play(2)
    observations, _ = env.reset(seed=7, options={"board": board})
    assert list(observations) == ["player_1"]
    assert env.board == board


def test_the_information_says_what_the_players_are_bound_to():
    env = KatroMultiAgentEnv({"rules": "katro-fieldnotes", "max_plies": 2})
    assert env.reset()[1]["player_0"]["bound"].tolist() == [-1, -1]
    assert play(env, 7)[-1]["player_1"]["bound"].tolist() == [-1, 1]
    infos = play(env, env.board.legal_actions[0])[-1]
    assert infos["player_0"]["bound"].tolist() == infos["player_1"]["bound"][::-1].tolist()
    assert KatroMultiAgentEnv().reset()[1] == {"player_0": {}}


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_in_mid_game_keeps_the_game(again):
    env = started(max_plies=20)
    rng = np.random.default_rng(0)
    for _ in range(9):
        play(env, rng.choice(env.board.legal_actions))
    other = again(env)
    while True:
        assert other.board == env.board
        action = rng.choice(env.board.legal_actions)
        first, second = play(env, action), play(other, action)
        assert first[1:4] == second[1:4]
        if first[3]["__all__"]:
            break


def test_nothing_that_was_returned_changes_later():
    env = started(rules="katro-fieldnotes", max_plies=30)
    rng, kept = np.random.default_rng(0), []
    for _ in range(300):
        action = rng.choice(env.board.legal_actions)
        observations, _, terminateds, truncateds, infos = play(env, action)
        arrays = [
            x for each in (observations, infos) for part in each.values() for x in part.values()
        ]
        assert all(array.flags.writeable and array.flags.c_contiguous for array in arrays)
        kept += [(array, array.copy()) for array in arrays]
        if terminateds["__all__"] or truncateds["__all__"]:
            env.reset()
    assert all(np.array_equal(*pair) for pair in kept)


def test_render_modes():
    env = started(render_mode="ansi")
    assert env.render() == str(katro.Board())
    assert started(render_mode="rgb_array").render().ndim == 3
    assert env.metadata is not started().metadata
    with pytest.warns(UserWarning, match="render mode"):
        assert started().render() is None


def ppo(runners=0, **training):
    # With illegal="raise" a single illegal action would end the training.
    env_config = {"rules": "katro-4x4", "illegal": "raise", "max_plies": 400}
    return (
        PPOConfig()
        .environment("katro", env_config=env_config)
        .env_runners(num_env_runners=runners, num_envs_per_env_runner=16)
        .multi_agent(policies={"both"}, policy_mapping_fn=lambda agent, episode, **kwargs: "both")
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=ActionMaskingTorchRLModule, model_config={"fcnet_hiddens": [32]}
            )
        )
        .training(train_batch_size_per_learner=512, minibatch_size=128, num_epochs=1, **training)
        .debugging(seed=0)
    )


@pytest.mark.parametrize("runners", [0, 1])
@pytest.mark.filterwarnings("default")
def test_ppo_trains_by_self_play_and_keeps_to_the_masks(cluster, runners):
    config = ppo(runners)
    with warnings.catch_warnings(record=True) as caught:
        algorithm = config.build_algo()
        assert config.enable_rl_module_and_learner
        assert config.enable_env_runner_and_connector_v2
        before = pickle.dumps(algorithm.get_module("both").get_state())
        for _ in range(2):
            result = algorithm.train()
        assert pickle.dumps(algorithm.get_module("both").get_state()) != before
        algorithm.stop()
    assert not [warning for warning in caught if "katro" in warning.filename]
    played = result["env_runners"]
    assert played["num_env_steps_sampled_lifetime"] >= 1024
    assert played["num_episodes_lifetime"] > 10
    assert played["episode_return_mean"] == 0
    returns = played["agent_episode_returns_mean"]
    assert returns["player_0"] == -returns["player_1"]
    assert result["learners"]["both"]["num_module_steps_trained"] > 0


@pytest.mark.filterwarnings("ignore")  # those of RLlib itself
def test_ppo_learns_from_each_observation_how_the_game_ended_for_that_agent(cluster):
    # Without discount and bootstrapping the target of every value is the result of its game.
    algorithm = ppo(gamma=1.0, lambda_=1.0).build_algo()
    episodes = algorithm.env_runner.sample(num_episodes=20)
    results = {}
    for episode in episodes:
        board, steps = katro.Board("katro-4x4"), dict.fromkeys(AGENTS, 0)
        while not board.is_over:
            agent = AGENTS[board.to_move]
            part = episode.agent_episodes[agent]
            seen = part.get_observations(steps[agent])
            assert seen["observations"].tolist() == board.observation().ravel().tolist()
            assert seen["action_mask"].tolist() == board.action_mask.tolist()
            result = float(part.get_return())
            results.setdefault(seen["observations"].tobytes(), set()).add(result)
            board = board.play(int(part.get_actions(steps[agent])))
            steps[agent] += 1
        for agent, part in episode.agent_episodes.items():
            assert len(part) == steps[agent]
            assert part.get_return() == (1 if agent == AGENTS[board.winner] else -1)
    learner = algorithm.learner_group._learner
    connect = learner._learner_connector
    batch = connect(rl_module=learner.module, batch={}, episodes=episodes, shared_data={})["both"]
    rows = 0
    for i in np.flatnonzero(batch["loss_mask"].numpy()):
        target = float(batch["value_targets"][i])
        expected = results[batch["obs"][i].numpy().tobytes()]
        assert any(abs(target - result) < 1e-4 for result in expected)
        rows += 1
    assert rows == sum(len(episode) for episode in episodes)
    algorithm.stop()


def test_it_needs_rllib_only(check_alone, check_missing):
    check_alone("rllib", "ray", "pettingzoo", "stable_baselines3", "pyspiel", "torch")
    check_missing("rllib", "ray", "ray")


def test_the_docstrings(check_doctests):
    check_doctests(katro.rllib)


@pytest.mark.filterwarnings("ignore")
def test_the_page(check_page, cluster, capsys):
    check_page("rllib.md", "ray", "torch")
    assert "policy against random" in capsys.readouterr().out
