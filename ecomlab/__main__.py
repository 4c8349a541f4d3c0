"""The command `ecomlab`, also as `python -m ecomlab`, which `accelerate launch -m ecomlab` starts."""

import sys

from ecomlab import interrupted


def main() -> None:
    """Run the command line; what takes long to import is imported here, once Ctrl-C is provided for."""
    interrupted.provide()
    try:
        from ecomlab.cli import main as run
    except KeyboardInterrupt:  # between two imports
        print(interrupted.line(), file=sys.stderr)
        raise SystemExit(interrupted.CODE) from None
    run()


if __name__ == "__main__":
    main()
