"""`python -m katro` is the command `katro`."""

from katro.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
