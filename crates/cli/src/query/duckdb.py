"""Runs a query with the `duckdb` module of Python.

`fathom query` runs this where there is no program `duckdb`. The argument is the inventory's directory; what to do is a JSON
object on standard input: statements for `setup`, the `statement` that answers, its `format` and `width`, and what to say if
the module is `missing`.
"""

import signal
import sys

# What stands in the directory of whoever calls is not to be taken for a module.
sys.path[:] = [directory for directory in sys.path if directory]
# End as other programs do, without a trace of Python.
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)

import csv
import json
import os

# The first that can be kept from all files but some.
OLDEST = (1, 2)
ROWS_SHOWN = 1000
ROWS_FETCHED = 4096


def batches(cursor):
    """Rows as they come, some at a time."""
    while rows := cursor.fetchmany(ROWS_FETCHED):
        yield rows


def write_csv(cursor, out):
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column[0] for column in cursor.description])
    for rows in batches(cursor):
        writer.writerows(rows)


def write_lines(cursor, out):
    for rows in batches(cursor):
        out.write("".join(line + "\n" for (line,) in rows))


def answer(request, connection, out):
    statement = request["statement"]
    if request["format"] == "table":
        relation = connection.sql(statement)
        relation.show(max_rows=ROWS_SHOWN, max_width=request["width"])
        return
    cursor = connection.execute(statement)
    write = write_csv if request["format"] == "csv" else write_lines
    write(cursor, out)


def without_place(error):
    """DuckDB's words, without a place that is one in `statement` and not in the query."""
    return str(error).split("\n\nLINE ", 1)[0].rstrip()


def main():
    request = json.load(sys.stdin.buffer)
    try:
        import duckdb
    except ImportError as error:
        sys.stderr.write("%s: %s\n" % (request["missing"], error))
        return 2
    if tuple(int(part) for part in duckdb.__version__.split(".")[:2]) < OLDEST:
        sys.stderr.write("%s: it is version %s, and 1.2 or newer is needed\n" % (request["missing"], duckdb.__version__))
        return 2
    os.chdir(sys.argv[1])
    out = open(1, "w", encoding="utf-8", newline="", closefd=False)
    sys.stdout = out
    try:
        connection = duckdb.connect()
        # Variables of this program are no tables.
        connection.execute("SET python_enable_replacements = false")
        for statement in request["setup"]:
            connection.execute(statement)
        answer(request, connection, out)
        out.flush()
    except duckdb.Error as error:
        out.flush()
        sys.stderr.write(without_place(error) + "\n")
        return 1
    return 0


sys.exit(main())
