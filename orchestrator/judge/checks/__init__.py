"""One property a file: what it catches, what it cannot.

Each gets what the judge holds, never what a candidate says of itself where the judge can look.
"""
