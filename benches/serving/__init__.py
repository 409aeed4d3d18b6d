"""The parts of `serve.py` that it does not share with other comparisons (runner/).

cases (requirements), process (a running server), clients (load generators), measure (execution of a
case), report (results).
"""
