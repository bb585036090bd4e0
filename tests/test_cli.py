"""The command `katro`."""

import io
import json
import subprocess
import sys
from importlib.resources import files

import pytest

import katro
from katro import cli


def run(capsys, *arguments):
    """The exit code of the command, what it printed, and its complaints."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as error:
        code = error.code
    out, err = capsys.readouterr()
    return code, out, err


def play(capsys, monkeypatch, text, *arguments):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run(capsys, "play", *arguments)


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "katro", "perft", "--depth", "2"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1  6\n2  36\n", "")
    done = subprocess.run(
        [sys.executable, "-m", "katro", "match", "strong", "random"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith('katro: unknown policy "strong", known are random')


def test_version_and_help(capsys):
    assert run(capsys, "--version") == (0, f"katro {katro.__version__}\n", "")
    code, out, err = run(capsys, "--help")
    assert (code, err) == (0, "")
    for command in ("play", "match", "ladder", "perft", "bench", "selfcheck"):
        assert command in out
        code, text, err = run(capsys, command, "--help")
        assert (code, err) == (0, "")
        assert len(text.splitlines()) > 4


def test_match_prints_the_result(capsys):
    code, out, err = run(capsys, "match", "greedy", "random", "--games", 50, "--rules", "katro-4x4")
    assert (code, err) == (0, "")
    assert out.startswith("greedy against random: ")
    assert "of 50\n" in out
    assert "win rate" in out
    again = run(capsys, "match", "greedy", "random", "--games", 50, "--rules", "katro-4x4")
    assert again == (0, out, "")


def test_ladder_prints_a_markdown_table(capsys):
    code, out, err = run(
        capsys, "ladder", "--games", 20, "--rules", "katro-4x4", "--players", "random", "greedy"
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "| player | Elo (95 %) | greedy | random |"
    assert lines[1] == "| --- | ---: | ---: | ---: |"
    assert lines[2].startswith("| greedy | ")
    assert lines[3].startswith("| random | 0 | ")


def test_perft_counts(capsys):
    assert run(capsys, "perft", "--rules", "katro-4x4", "--depth", 4) == (
        0,
        "1  4\n2  16\n3  56\n4  190\n",
        "",
    )


def test_bench_measures(capsys):
    code, out, err = run(capsys, "bench", "--games", 64, "--seconds", 0.02)
    assert (code, err) == (0, "")
    assert out.count("M plies/s") == 3
    assert "M nodes/s" in out


def test_selfcheck_passes(capsys):
    code, out, err = run(capsys, "selfcheck")
    assert (code, err) == (0, "")
    assert "WRONG" not in out
    assert out.endswith("checks, none failed\n")


@pytest.mark.parametrize("change", ["laps", "actions"])
def test_selfcheck_fails_if_an_answer_is_wrong(capsys, monkeypatch, change):
    known = json.loads(files("katro").joinpath("known_answers.json").read_text("utf-8"))
    known["games"] = known["games"][:1]
    if change == "laps":
        known["games"][0]["laps"] += 1
    else:
        known["games"][0]["actions"][0] = 99
    monkeypatch.setattr(cli.json, "loads", lambda text: known)
    code, out, err = run(capsys, "selfcheck")
    assert (code, err) == (1, "")
    assert "WRONG" in out


def test_the_known_answers_are_of_every_rule_set_and_end_in_wins():
    known = json.loads(files("katro").joinpath("known_answers.json").read_text("utf-8"))
    assert {game["rules"] for game in known["games"]} == set(katro.RULES)
    assert {game["winner"] for game in known["games"]} == {0, 1}


def test_play_takes_moves_undo_and_hints(capsys, monkeypatch):
    text = "undo\na\nundo\nhint\nhelp\nboard\nz\nb\nquit\n"
    code, out, err = play(capsys, monkeypatch, text, "--opponent", "greedy", "--seed", 1)
    assert (code, err) == (0, "")
    assert "You are South, greedy is North" in out
    assert "there is no move of yours to take back" in out
    assert out.count("greedy plays ") == 2
    assert "2 seeds from (6, 1) to (6, 3)" in out
    assert "looks best, value" in out
    assert "take back your last move" in out
    assert "'z'" in out or '"z"' in out
    assert out.endswith("goodbye\n")
    # The start, after the undo, and when asked for.
    assert out.count(str(katro.Board())) == 3


def test_play_ends_politely_at_the_end_of_the_input(capsys, monkeypatch):
    code, out, err = play(capsys, monkeypatch, "a\n", "--opponent", "random")
    assert (code, err) == (0, "")
    assert out.endswith("goodbye\n")


def test_play_ends_politely_on_ctrl_c(capsys, monkeypatch):
    def interrupted(prompt):
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    code, out, err = run(capsys, "play")
    assert (code, err) == (0, "")
    assert out.endswith("goodbye\n")


@pytest.mark.parametrize("seat", ["south", "north"])
@pytest.mark.parametrize("rules", ["katro-4x4", "katro-ludii", "katra-boaoaka"])
def test_play_goes_on_to_the_end(capsys, monkeypatch, rules, seat):
    actions = katro.Rules.named(rules).num_actions
    names = [katro.Rules.named(rules).action_name(action) for action in range(actions)]
    text = "\n".join(names * 300) + "\n"
    arguments = ("--opponent", "minimax:3", "--rules", rules, "--seat", seat, "--seed", 0)
    code, out, err = play(capsys, monkeypatch, text, *arguments)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] in ("you have won", "minimax:3 has won")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match", "strong", "random"], 'unknown policy "strong", known are random, greedy'),
        (["match", "random", "minimax:0"], "the depth of minimax must be 1 to 64, got 0"),
        (["match", "random"], "the following arguments are required: B"),
        (["match", "random", "greedy", "--games", "0"], "games must be at least 1, got 0"),
        (["match", "random", "greedy", "--games", "x"], "invalid int value: 'x'"),
        (["match", "random", "greedy", "--seed", "-1"], "seed must be at least 0, got -1"),
        (["match", "random", "greedy", "--rules", "chess"], "chess"),
        (["ladder", "--games", "0"], "games must be at least 1, got 0"),
        (["ladder", "--players", "random"], "at least two players"),
        (["perft", "--depth", "0"], "depth must be at least 1, got 0"),
        (["perft", "--rules", "chess"], "chess"),
        (["bench", "--seconds", "0"], "seconds must be between 0 and 3600, got 0.0"),
        (["bench", "--games", "0"], "0"),
        (["bench", "--threads", "0"], "num_threads must be at least 1"),
        (["play", "--opponent", "strong"], 'unknown policy "strong"'),
        (["play", "--seat", "west"], "invalid choice: 'west'"),
        (["play", "--seed", "-1"], "a seed must be 0 or more, got -1"),
        (["play", "--rules", "chess"], "chess"),
        (["chess"], "invalid choice: 'chess'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_a_mistake_is_told_in_one_line(capsys, arguments, message):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert err.startswith("katro")
    assert message in err
    assert err.count("\n") == 1
    assert err.endswith("\n")
