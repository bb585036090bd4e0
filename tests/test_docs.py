"""Every example in the documentation runs and prints what it says."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import katro
import katro._katro
import katro.env
import katro.match
import katro.vector

README = Path(__file__).parent.parent / "README.md"
RULES = README.parent / "docs" / "rules.md"


def documented(module: ModuleType) -> dict[str, str]:
    """Returns the docstrings of the public things of a module and of their members, by name."""
    found = {}
    for name, thing in vars(module).items():
        if name.startswith("_") or not getattr(thing, "__module__", "").startswith("katro"):
            continue
        members: dict[str, Any] = vars(thing) if inspect.isclass(thing) else {}
        found[name] = inspect.getdoc(thing) or ""
        for member, value in members.items():
            if not member.startswith("_"):
                found[f"{name}.{member}"] = inspect.getdoc(value) or ""
    return found


EXAMPLES = {
    name: text
    for module in (katro._katro, katro.env, katro.match, katro.vector)
    for name, text in documented(module).items()
    if ">>>" in text
}


def test_the_public_names_have_examples() -> None:
    for name in ("Board", "Rules", "KatroEnv", "KatroVectorEnv", "perft"):
        assert name in EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_docstring_example_runs(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {}, name, None, None)
    result = doctest.DocTestRunner().run(test)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", katro.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert name == "__version__" or inspect.getdoc(getattr(katro, name))


@pytest.mark.parametrize("name", ["Board", "Rules", "KatroEnv", "KatroVectorEnv"])
def test_every_public_member_is_documented(name: str) -> None:
    for member, value in vars(getattr(katro, name)).items():
        if not member.startswith("_") and (callable(value) or inspect.isdatadescriptor(value)):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_the_first_lines_of_the_readme_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    scripts = [block for block in blocks if ">>>" not in block]
    assert scripts
    for script in scripts:
        exec(script, {})


def test_every_code_block_of_the_rules_is_an_example() -> None:
    parts = RULES.read_text("utf-8").split("```")
    assert len(parts) % 2 == 1
    assert len(parts) > 20
    for block in parts[1::2]:
        assert block.startswith("python\n>>> ")
        assert block.endswith("\n\n")  # else the fence would be expected output


def test_the_rules_list_every_named_set_as_it_is() -> None:
    text = RULES.read_text("utf-8")
    rows = re.findall(r"^\| `(\S+)` \| (\d) x (\d) \| `([^`]+)` \| (\d+) \|", text, flags=re.M)
    assert tuple(row[0] for row in rows) == katro.RULES
    for name, height, width, arguments, actions in rows:
        rules = katro.Rules.named(name)
        assert eval(f"Rules({arguments})", {"Rules": katro.Rules}) == rules
        assert (2 * rules.rows, rules.columns) == (int(height), int(width))
        assert rules.num_actions == int(actions)
    measured = text.partition("## Random games")[2]
    assert tuple(re.findall(r"^\| `(\S+)` \|", measured, flags=re.M)) == katro.RULES


@pytest.mark.parametrize("switch", list(inspect.signature(katro.Rules).parameters)[3:])
def test_the_rules_explain_every_switch(switch: str) -> None:
    assert f"`Rules({switch}=" in RULES.read_text("utf-8").replace("2, 8, ", "")
