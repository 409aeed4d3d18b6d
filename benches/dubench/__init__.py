"""The parts of `du.py`: arms (who is measured), cases (on what), build and mount (with what), run (how), stats and
report (what it says)."""
