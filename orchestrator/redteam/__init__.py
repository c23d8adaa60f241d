"""The judge put to the test: kernel files that cheat or are wrong, and honest ones, each with the verdict it must get.

  entries   the corpora on disk, and what is expected of each file
  runner    their verdicts: from the whole, and from the run-time layer alone (no policy)
  score     what the verdicts come to

`corpus/` is data: files that were given to the project stay as they came (`given/`, described in given.yaml), our own
say in their first line what they are. Nothing of it is ever imported here.
"""
