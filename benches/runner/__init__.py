"""The common part of `du.py`, `list.py` and `inventory.py`.

cases (arms and requirements), answers (verification), build and machine (programs and hardware),
run (execution), stats and report (results), main (the command line). Names no measured program but
fathom.
"""
