"""Scans that outgrow one machine: units of a tree, done by many workers, and put together."""
