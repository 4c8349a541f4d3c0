"""The command `ecomlab`, also as `python -m ecomlab`, which `accelerate launch -m ecomlab` starts."""

import sys

from ecomlab import __version__


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:  # without the libraries of the command line
        return print("ecomlab", __version__)
    try:
        from ecomlab.cli import main as run  # takes long enough to be interrupted
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
