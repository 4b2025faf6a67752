"""`python -m nethook` is the command `nethook`."""

from nethook.cli.entry import main

if __name__ == "__main__":
    main()
