"""nethook beside other tools, doing the same work in one run: `make bench-peers`."""
