"""Known answers from programs written independently of this project."""

import json

import numpy as np
import pytest
from games import DATA, choose, read_lines

import katro

BOARDS = ("6x6", "4x4", "4x6", "6x3", "2x6")
GAMES = ("6x6", "4x4", "4x6", "6x3")
PERFT = [
    (board, depth, count)
    for board, counts in json.loads((DATA / "perft.json").read_text()).items()
    for depth, count in enumerate(counts, start=1)
]


def rules_of(board, seeds=2):
    rows, columns = map(int, board.split("x"))
    return katro.Rules(rows // 2, columns, seeds)


def seen_by(player, grid):
    return np.asarray(grid) if player == 0 else np.rot90(grid, 2)


@pytest.mark.parametrize("name", BOARDS)
def test_single_moves_match_the_known_answers(name):
    for case in read_lines(f"moves_{name}.jsonl"):
        board = katro.Board.from_grid(case["board"], case["player"])
        assert board.rules == rules_of(name)
        assert board.legal_actions == case["legal"]
        after = board.play(case["column"])
        assert after.grid().tolist() == case["result"]
        assert after.to_move == 1 - case["player"]
        assert after.winner == case["winner"]
        assert after.is_over == (case["winner"] is not None)

        trace = board.trace(case["column"])
        assert len(trace) == case["laps"]
        assert sum(lap.taken for lap in trace) == case["captured"]
        assert sum(bool(lap.captured) for lap in trace) == case["captures"]
        for lap, known in zip(trace, case.get("trace", trace), strict=True):
            if known is lap:
                continue
            lifted, seeds, landed, captured, taken = known
            assert lap.lifted == tuple(lifted)
            assert lap.landed == tuple(landed)
            assert lap.captured == (() if captured is None else (tuple(captured),))
            assert (lap.seeds, lap.taken) == (seeds, taken)


def test_the_known_answers_hold_traces_wins_and_long_moves():
    cases = [case for name in BOARDS for case in read_lines(f"moves_{name}.jsonl")]
    assert sum("trace" in case for case in cases) > 100
    assert {case["winner"] for case in cases} == {None, 0, 1}
    assert max(case["laps"] for case in cases) > 50
    assert min(case["laps"] for case in cases) == 1


@pytest.mark.parametrize("name", BOARDS)
def test_single_moves_in_a_batch_match_the_known_answers(name):
    cases = read_lines(f"moves_{name}.jsonl")
    holes = np.size(cases[0]["board"])
    rules = rules_of(name, 255 // holes)
    fitting = [case for case in cases if np.sum(case["board"]) <= rules.total_seeds]
    assert len(fitting) > 0.9 * len(cases)

    envs = katro.KatroVectorEnv(len(fitting), rules=rules, autoreset_mode="Disabled")
    observations, infos = envs.set_boards(
        [katro.Board.from_grid(case["board"], case["player"], rules) for case in fitting]
    )
    for case, seen, mask in zip(fitting, observations, infos["action_mask"], strict=True):
        np.testing.assert_array_equal(seen, seen_by(case["player"], case["board"]))
        assert np.flatnonzero(mask).tolist() == case["legal"]

    actions = np.array([case["column"] for case in fitting])
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    boards = envs.boards()
    for i, case in enumerate(fitting):
        mover, won = case["player"], case["winner"] is not None
        np.testing.assert_array_equal(observations[i], seen_by(1 - mover, case["result"]))
        assert boards[i].grid().tolist() == case["result"]
        assert infos["captured"][i] == case["captured"]
        assert infos["laps"][i] == case["laps"]
        assert infos["to_move"][i] == boards[i].to_move == 1 - mover
        assert infos["winner"][i] == (case["winner"] if won else -1)
        assert rewards[i] == (1 if won else 0)
        assert terminated[i] == won
        assert not truncated[i]


@pytest.mark.parametrize("name", GAMES)
def test_whole_games_match_the_known_answers(name):
    for game in read_lines(f"games_{name}.jsonl"):
        board = katro.Board(rules_of(name))
        laps = captured = 0
        for move in game["moves"]:
            assert board.winner is None
            trace = board.trace(move)
            laps += len(trace)
            captured += sum(lap.taken for lap in trace)
            board = board.play(move)
        assert board.winner == game["winner"]
        assert board.grid().tolist() == game["final"]
        assert len(game["moves"]) == game["plies"]
        assert (laps, captured) == (game["laps"], game["captured"])


@pytest.mark.parametrize("name", GAMES)
def test_whole_games_in_a_batch_match_the_known_answers(name):
    games = read_lines(f"games_{name}.jsonl")
    envs = katro.KatroVectorEnv(len(games), rules=rules_of(name))
    _, infos = envs.reset(seed=0)
    laps, captured, returns = np.zeros((3, len(games)))
    for ply in range(max(game["plies"] for game in games)):
        open_ = np.array([ply < game["plies"] for game in games])
        actions = choose(np.random.default_rng(ply), infos["action_mask"])
        actions[open_] = [game["moves"][ply] for game in games if ply < game["plies"]]
        _, rewards, terminated, truncated, infos = envs.step(actions)
        laps[open_] += infos["laps"][open_]
        captured[open_] += infos["captured"][open_]
        returns[open_] += rewards[open_]
        for i in np.flatnonzero(open_):
            last = ply + 1 == games[i]["plies"]
            assert terminated[i] == last
            assert not truncated[i]
            if last:
                assert infos["winner"][i] == games[i]["winner"]
                assert envs.boards()[i].grid().tolist() == games[i]["final"]
    assert laps.tolist() == [game["laps"] for game in games]
    assert captured.tolist() == [game["captured"] for game in games]
    assert returns.tolist() == [1] * len(games)


@pytest.mark.parametrize(("name", "depth", "count"), PERFT)
def test_perft_matches_the_known_answers(name, depth, count):
    assert katro.perft(katro.Board(rules_of(name)), depth) == count
