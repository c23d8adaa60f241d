"""What a person takes away: a kernel as a package with the evidence for it.

source         which kernel: an op's champion or a run's best, with its verdict and measurement
envelope       where it was verified: sizes, dtypes, parameters, device
bindings       how a wrapper finds the sizes of the dims in its arguments
package        the files
certificate    the evidence, and whether files are still those that it is about
pull_request   the files as a branch of the person's repository
"""
