"""Reads the inventory in the directory argv[1] with Polars and pyarrow. Prints rows, types and sums as JSON.

Fails where the two differ.
"""

import json
import os
import sys

import polars
import pyarrow.parquet

os.chdir(os.fsencode(sys.argv[1]))
with open("manifest.json", encoding="utf-8") as file:
    manifest = json.load(file)

tables = {}
for listed in manifest["files"]:
    tables.setdefault(listed["table"], []).append(listed)

report = {}
for name, files in sorted(tables.items()):
    paths = [listed["name"] for listed in files]
    arrow = pyarrow.concat_tables([pyarrow.parquet.read_table(path) for path in paths])
    frame = polars.concat([polars.read_parquet(path) for path in paths])
    assert frame.columns == arrow.column_names, name
    for column in frame.columns:
        assert frame[column].to_list() == polars.Series(arrow[column]).to_list(), (name, column)
    report[name] = {
        "rows": [frame.height, arrow.num_rows, sum(listed["rows"] for listed in files)],
        "arrow": {field.name: str(field.type) for field in arrow.schema},
        "polars": {column: str(kind) for column, kind in frame.schema.items()},
    }
    if name == "entries":
        report["size"] = [frame["size"].sum(), pyarrow.compute.sum(arrow["size"]).as_py()]
        report["names"] = sorted(name.hex() for name in frame["name_raw"].drop_nulls().to_list())

json.dump(report, sys.stdout)
