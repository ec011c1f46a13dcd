"""The command line: one file for each verb, which wires rooms together and prints; nothing here is worth importing.

In: words from a terminal.  Out: lines on it, files, an exit code.  Used by: people.  Read next: main.py.
"""
