"""Documents packed into one row do not see each other (field note D22)."""

import pytest
import torch

from pellucid.data import IGNORED, Batches, TokenFile, TokenWriter
from pellucid.text import character_tokenizer
from pellucid.train.variant import SummedLoss
from tests.whole.models import ARCHITECTURES, random_ids, random_model

every_model = pytest.mark.parametrize("name", ARCHITECTURES)
both_paths = pytest.mark.parametrize("fused", [False, True], ids=["written out", "fused"])
DOCUMENT_IDS = torch.tensor([[0] * 5 + [1] * 4 + [2] * 7])
STARTS = (slice(0, 5), slice(5, 9), slice(9, 16))


@torch.no_grad()
@every_model
@both_paths
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_another_first_document_changes_no_bit_of_the_second(name, fused, dtype):
    model, ids = random_model(ARCHITECTURES[name], dtype).use_fused_attention(fused), random_ids(1, 16)
    others = ids.clone()
    others[:, :5] = random_ids(1, 5)
    before, after = (model(row, document_ids=DOCUMENT_IDS) for row in (ids, others))
    assert torch.equal(before[:, 5:], after[:, 5:])
    assert not torch.equal(before[:, :5], after[:, :5])


@torch.no_grad()
@every_model
@both_paths
def test_each_document_is_what_it_would_be_alone(name, fused):
    model, ids = random_model(ARCHITECTURES[name], torch.float64).use_fused_attention(fused), random_ids(1, 16)
    positions = torch.cat([torch.arange(5), torch.arange(4), torch.arange(7)])[None]
    together = model(ids, document_ids=DOCUMENT_IDS, positions=positions)
    alone = torch.cat([model(ids[:, place]) for place in STARTS], dim=1)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("name", ["default", "llama", "window", "olmo2", "no positions"])
def test_where_only_distances_count_positions_need_not_begin_anew(name):
    model, ids = random_model(ARCHITECTURES[name], torch.float64), random_ids(1, 16)
    together = model(ids, document_ids=DOCUMENT_IDS)
    alone = torch.cat([model(ids[:, place]) for place in STARTS], dim=1)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-4)  # rope's tables are float32


@torch.no_grad()
def test_each_row_has_documents_of_its_own_beside_padding():
    model, ids = random_model(ARCHITECTURES["default"], torch.float64), random_ids(2, 16)
    document_ids = torch.cat([DOCUMENT_IDS, torch.zeros_like(DOCUMENT_IDS)])
    together = model(ids, document_ids=document_ids, lengths=[16, 11])
    torch.testing.assert_close(together[:1], model(ids[:1], document_ids=DOCUMENT_IDS), rtol=0, atol=1e-9)
    torch.testing.assert_close(together[1, :11], model(ids[1:, :11])[0], rtol=0, atol=1e-9)


def test_no_gradient_crosses_from_one_document_to_another():
    model, seen = random_model(ARCHITECTURES["default"]), []

    def keep(module, args, output):
        output.retain_grad()
        seen.append(output)

    model.token_embedding.register_forward_hook(keep)
    model(random_ids(1, 16), document_ids=DOCUMENT_IDS)[:, 5:9].logsumexp(-1).sum().backward()
    assert seen[0].grad[:, :5].eq(0).all()
    assert seen[0].grad[:, 9:].eq(0).all()
    assert seen[0].grad[:, 5:9].ne(0).any()


def packed_batch(folder, first: str) -> tuple[torch.Tensor, ...]:
    """One row of two documents, as training gets it: the first as given, the second always the same."""
    tokenizer, second = character_tokenizer(["abcdefgh"]), "ghgfedc"
    with TokenWriter(folder / f"{first}.tokens", tokenizer, text="") as writer:
        for text in (first, second):
            writer.begin_document(tenth=0)
            writer.add(tokenizer.encode(text), characters=len(text))
    tokens = TokenFile.open(folder / f"{first}.tokens")
    for seed in range(100):  # the seed at which the row begins with the file
        batches = Batches(tokens, context_length=len(tokens) - 1, batch_size=1, seed=seed, mask_documents=True)
        if batches.starts(0)[0] == 0:
            return batches.at(0)
    raise AssertionError


@both_paths
@pytest.mark.parametrize("name", ["default", "gpt2"])
def test_in_training_too_another_first_document_changes_no_bit_of_the_second(tmp_path, name, fused):
    model = random_model(ARCHITECTURES[name]).use_fused_attention(fused)
    found = []
    for first in ("abcde", "eecba"):
        inputs, targets, document_ids, positions = packed_batch(tmp_path, first)
        own = targets.clone()
        own[document_ids == 1] = IGNORED  # what the second document's tokens cost, and teach
        model.zero_grad()
        total, count = SummedLoss(model)(inputs, own, document_ids, positions)
        total.backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        with torch.no_grad():
            logits = model(inputs, document_ids=document_ids, positions=positions)
        found.append((total.detach(), count, logits[document_ids == 2], *gradients))
    assert found[0][1] == 8
    assert all(map(torch.equal, *found))


def test_without_the_mask_it_would(tmp_path):
    model, found = random_model(ARCHITECTURES["default"]), []
    for first in ("abcde", "eecba"):
        inputs, _, document_ids, _ = packed_batch(tmp_path, first)
        with torch.no_grad():
            found.append(model(inputs)[document_ids == 2])
    assert not torch.equal(*found)
