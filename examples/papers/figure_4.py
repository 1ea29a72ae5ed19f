"""Figure 4 of the tailoring paper: Figure 3 with ε = 5."""

from figure_3 import main

if __name__ == "__main__":
    main("figure_4", 5.0)
