"""What two versions record of the same scripts: `make golden`."""
