"""KatroVectorEnv and katro.pettingzoo in TorchRL."""

import warnings

import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import katro

with warnings.catch_warnings():
    # PyTorch and TensorDict warn of what they import.
    warnings.simplefilter("ignore")
    import torch
    from tensordict.nn import TensorDictModule
    from torchrl.envs import (
        ActionMask,
        GymWrapper,
        PettingZooWrapper,
        TransformedEnv,
        check_env_specs,
    )
    from torchrl.modules import MaskedCategorical

# A second thread costs more than it gives on a busy machine.
torch.set_num_threads(1)


def masked(games, mode="Disabled", categorical=True, **options):
    """The games with their masks, in the observation form that each mode needs."""
    if mode == "SameStep":
        options |= {"illegal": "lose"}
    else:
        options |= {"observation": "dict"}
    envs = katro.KatroVectorEnv(games, autoreset_mode=mode, **options)
    env = GymWrapper(envs, categorical_action_encoding=categorical)
    if mode == "SameStep":
        return env.append_transform(ActionMask())
    return TransformedEnv(env, ActionMask())


def actions_of(steps):
    actions = steps["action"]
    return actions.argmax(-1) if actions.ndim == 3 else actions


def check(steps, rules="katro", max_plies=2000):
    """Replays every game of a rollout on boards, and returns how many were won and cut off."""
    won = cut_off = 0
    for game, action in zip(steps, actions_of(steps).tolist(), strict=True):
        board, plies = katro.Board(rules), 0
        for t, row in enumerate(game):
            assert row["observation"].tolist() == board.observation().tolist()
            assert row["action_mask"].tolist() == board.action_mask.tolist()
            assert not row["done"]
            board, plies = board.play(action[t]), plies + 1
            after = row["next"]
            assert after["observation"].tolist() == board.observation().tolist()
            truncated = plies == max_plies and not board.is_over
            over = board.is_over or truncated
            legal = [1] * board.rules.num_actions if over else board.action_mask.tolist()
            assert after["action_mask"].tolist() == legal
            assert after["reward"].tolist() == [board.is_over]
            assert after["terminated"].tolist() == [board.is_over]
            assert after["truncated"].tolist() == [truncated]
            assert after["done"].tolist() == [over]
            won, cut_off = won + board.is_over, cut_off + truncated
            if over:
                board, plies = katro.Board(rules), 0
    return won, cut_off


@pytest.mark.parametrize("categorical", [True, False])
@pytest.mark.parametrize("mode", ["Disabled", "SameStep"])
@pytest.mark.parametrize("games", [1, 2, 5])
def test_every_row_of_a_random_rollout_is_right(games, mode, categorical):
    torch.manual_seed(0)
    rules = {"rules": "katro-4x4", "max_plies": 20}
    env = masked(games, mode, categorical, **rules)
    steps = env.rollout(2000 // games, break_when_any_done=False)
    assert steps.batch_size == (games, 2000 // games)
    won, cut_off = check(steps, **rules)
    assert won > 10
    assert cut_off > 10


@pytest.mark.parametrize("mode", ["Disabled", "SameStep"])
@pytest.mark.parametrize("rules", ["katro", "katro-6x3", "katro-fieldnotes"])
def test_check_env_specs(rules, mode):
    torch.manual_seed(0)
    check_env_specs(masked(3, mode, rules=rules))
    check_env_specs(masked(3, mode, rules=rules, opponent="greedy"))


def test_no_action_is_illegal_in_many_steps_against_an_opponent():
    torch.manual_seed(0)
    env = masked(64, rules="katro-4x4", opponent="random", seat=1)
    steps = env.rollout(300, break_when_any_done=False)
    assert steps["action_mask"].gather(2, steps["action"][..., None]).all()
    assert steps["action_mask"].bool().logical_not().any()
    rewards, over = steps["next", "reward"], steps["next", "done"]
    assert set(rewards[over].tolist()) == {-1, 1}
    assert not rewards[~over].any()


def test_a_masked_policy_plays_legal_actions_only():
    torch.manual_seed(0)

    def choose(masks):
        chosen = MaskedCategorical(logits=torch.randn(masks.shape), mask=masks.bool())
        assert not chosen.probs[masks == 0].any()
        return chosen.sample()

    policy = TensorDictModule(choose, in_keys=["action_mask"], out_keys=["action"])
    env = masked(16, rules="katro-4x4", max_plies=20)
    steps = env.rollout(200, policy, break_when_any_done=False)
    won, cut_off = check(steps, "katro-4x4", 20)
    assert min(won, cut_off) > 10


def test_next_step_is_refused_by_torchrl():
    with pytest.raises(RuntimeError, match="SAME_STEP or DISABLED"):
        GymWrapper(katro.KatroVectorEnv(2))


@pytest.mark.parametrize(
    "make",
    [
        lambda options: katro.KatroVectorEnv(3, autoreset_mode="SameStep", **options),
        lambda options: SyncVectorEnv(
            [lambda: katro.KatroEnv(**options)] * 3, autoreset_mode=AutoresetMode.SAME_STEP
        ),
    ],
)
def test_dicts_in_same_step_mode_are_more_than_torchrl_reads_of_anybody(make):
    envs = make({"observation": "dict", "illegal": "lose", "max_plies": 1})
    with pytest.raises(RuntimeError, match="StopIteration"):
        GymWrapper(envs)


def test_pettingzoo_wrapper_has_the_masks_and_rewards_of_both_players():
    from katro import pettingzoo

    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="tested using version"):  # of every version but one
        env = PettingZooWrapper(pettingzoo.raw_env(rules="katro-4x4"), use_mask=True)
    check_env_specs(env)
    won = {0: 0, 1: 0}
    for _ in range(20):
        board = katro.Board("katro-4x4")
        steps = env.rollout(1000)
        for row in steps:
            mover, other = f"player_{board.to_move}", f"player_{1 - board.to_move}"
            assert row[mover, "mask"].all()
            assert not row[other, "mask"].any()
            assert row[mover, "action_mask"][0].tolist() == board.action_mask.astype(bool).tolist()
            seen = row[mover, "observation", "observation"][0]
            assert seen.tolist() == board.observation().tolist()
            board = board.play(int(row[mover, "action"]))
            won_now = float(board.is_over)
            assert row["next", mover, "reward"].item() == won_now
            assert row["next", other, "reward"].item() == -won_now
            assert row["next", "terminated"].item() == board.is_over
            assert not row["next", "truncated"]
        assert board.is_over
        won[board.winner] += 1
    assert min(won.values()) > 0


def test_the_page(check_page):
    check_page("torchrl.md", "torchrl", "tensordict", "torch")
