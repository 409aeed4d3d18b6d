"""What `du.py` and `list.py` share: cases (on what, who, what is needed), answers (what is right), build and machine
(with what), run (how), stats and report (what it says), main (the command line). Names no measured program but fathom.
"""
