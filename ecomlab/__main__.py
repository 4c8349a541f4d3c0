"""`python -m ecomlab` is the command `ecomlab`: what `accelerate launch -m ecomlab` starts."""

from ecomlab.cli import main

if __name__ == "__main__":
    main()
