"""`python -m opendp_bayes` is the command `opendp-bayes`."""

from opendp_bayes.commands.main import main

if __name__ == "__main__":
    main()
