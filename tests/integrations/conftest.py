"""What the tests of the adapters share."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def run_python(script):
    """Runs a script in a new Python without a display, with warnings as errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def python():
    return run_python


@pytest.fixture
def check_missing():
    """Checks what importing an adapter says where its framework is missing."""

    def check(adapter, framework, extra):
        run_python(
            "import sys\n"
            f"sys.modules[{framework!r}] = None\n"
            "try:\n"
            f"    import katro.{adapter}\n"
            "except ImportError as error:\n"
            f"""    assert 'pip install "katro[{extra}]"' in str(error), error\n"""
            "else:\n"
            "    raise AssertionError('imported')\n"
        )

    return check


@pytest.fixture
def check_alone():
    """Checks that katro does without a framework, and an adapter without the others."""

    def check(adapter, framework, *others):
        run_python(
            "import sys, katro\n"
            f"assert not {{{framework!r}, 'torch', 'pygame', 'matplotlib'}} & set(sys.modules)\n"
            f"for name in {[*others, 'pygame', 'matplotlib.pyplot']!r}:\n"
            "    sys.modules[name] = None\n"
            "import warnings; warnings.simplefilter('ignore')\n"
            f"import katro.{adapter}\n"
        )

    return check


@pytest.fixture
def check_doctests():
    """Runs the examples of an adapter and checks that all that is public is documented."""

    def check(module, *without_example):
        finder = doctest.DocTestFinder(exclude_empty=False)
        found = {test.name: test for test in finder.find(module, globs={})}
        for test in found.values():
            assert doctest.DocTestRunner().run(test).failed == 0, test.name
        assert found[module.__name__].examples
        for name in module.__all__:
            thing = getattr(module, name)
            if name not in without_example:
                assert found[f"{module.__name__}.{name}"].examples, name
            for member, value in vars(thing).items() if inspect.isclass(thing) else ():
                if not member.startswith("_") and inspect.isfunction(value):
                    assert inspect.getdoc(value), f"{name}.{member}"

    return check


@pytest.fixture
def check_page(tmp_path, monkeypatch):
    """Runs the Python of a page in docs/integrations, and checks the versions it names."""

    def check(page, *packages):
        text = (ROOT / "docs" / "integrations" / page).read_text("utf-8")
        blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
        assert blocks
        monkeypatch.chdir(tmp_path)
        names = {"__name__": "__main__"}
        for block in blocks:
            exec(compile(block, page, "exec"), names)
        tested = dict(re.findall(r"^\| `([\w-]+)` \| ([\w.]+) \|$", text, flags=re.MULTILINE))
        assert set(tested) == set(packages)
        for package, number in tested.items():
            assert number == version(package).partition("+")[0], package
        return names

    return check
