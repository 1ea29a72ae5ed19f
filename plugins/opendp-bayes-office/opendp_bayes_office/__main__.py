"""`python -m opendp_bayes_office` is the command `opendp-bayes`."""

from opendp_bayes_office.commands.main import main

if __name__ == "__main__":
    main()
