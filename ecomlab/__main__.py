"""The command `ecomlab`, also as `python -m ecomlab`, which `accelerate launch -m ecomlab` starts."""


def main() -> None:
    """Run the command line."""
    try:
        from ecomlab.cli import main as run  # takes long enough to be interrupted
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
