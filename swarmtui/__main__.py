"""`python -m swarmtui` is `swarmtui`."""

from swarmtui.cli import main

if __name__ == "__main__":
    main()
