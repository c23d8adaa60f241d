"""A script that calls what is to be converted, as a person's would."""

import torch
from functions import logsumexp
from normed import Standardised

layer = Standardised(24)
for rows in (3, 5):
    logsumexp(layer(torch.rand(rows, 24).t().contiguous().t()))
