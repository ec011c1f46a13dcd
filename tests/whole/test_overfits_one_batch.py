"""Every architecture learns: one batch by heart, in a few dozen steps."""

import pytest
import torch

from pellucid.loss import cross_entropy
from pellucid.nn import TransformerLM
from tests.whole.models import ARCHITECTURES, random_ids


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_one_batch_is_learned_by_heart(name, no_shape_checks):
    model, ids = TransformerLM(ARCHITECTURES[name]), random_ids(4, 17)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(40):
        loss = cross_entropy(model(ids[:, :-1]), ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1
