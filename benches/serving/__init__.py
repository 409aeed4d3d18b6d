"""What `serve.py` is made of, beside what it shares with others in runner/: cases (what is needed), process (a server
that runs), clients (what asks it), measure (how a case is done), report (what a run says).
"""
